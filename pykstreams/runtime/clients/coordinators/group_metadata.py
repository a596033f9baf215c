"""The metadata by which brokers fence the transactions of a member that librdkafka does not know."""

from __future__ import annotations

import sys
from typing import Final

from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings, MemberOf

_NATIVE: Final = sys.byteorder


def group_metadata(group: GroupSettings, member: MemberOf) -> bytes:
    """Returns what ``send_offsets_to_transaction`` takes, as ``rd_kafka_consumer_group_metadata_write`` has it."""
    instance = b"\x01" if group.instance_id is None else b"\0" + group.instance_id.encode() + b"\0"
    return b"".join(
        (
            b"CGMDv2:",
            member.generation.to_bytes(4, _NATIVE, signed=True),
            group.group.encode() + b"\0",
            member.member_id.encode() + b"\0",
            instance,
        )
    )
