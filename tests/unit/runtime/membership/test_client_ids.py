"""The client ids of group members."""

from __future__ import annotations

from pykstreams.runtime.membership.client_ids import instance_of, member_client_id

FIRST = "7c1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b2"
PROCESS = "0d1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b1"


def test_members_tell_their_instance_by_its_id_in_front_or_behind() -> None:
    by_default = f"shop-{PROCESS}-StreamThread-2"
    by_client_id = "orders-on-rack-3-StreamThread-2"

    assert instance_of(member_client_id(by_default, PROCESS)) == PROCESS
    assert instance_of(member_client_id(by_client_id, PROCESS)) == PROCESS
    assert member_client_id(by_default, PROCESS) == f"{by_default}-membership"
    assert instance_of(member_client_id(by_default, FIRST)) == FIRST
    assert instance_of("something-else") == "something-else"
