"""The member of the group that a worker is, made by its settings."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any, cast

from pykstreams import StreamsConfig
from pykstreams.runtime.clients.coordinators.coordinator_requests import MemberOf
from pykstreams.runtime.membership.classic.membership import ClassicMembership
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.member_state import NoState
from pykstreams.runtime.membership.opening import GroupParts, open_membership
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.testing.clock import MockClock
from tests.unit.runtime.plans import part, plan, source


class PromptConnections:
    """A coordinator that answers at once; it notes for how long each answer would have been waited for."""

    def __init__(self) -> None:
        self.patience_s: list[float] = []

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        self.patience_s.append(timeout_s)
        return SimpleNamespace(error_code=0, topics=[])

    def close(self) -> None: ...


def test_an_answer_to_a_heartbeat_is_waited_for_until_the_member_is_in_doubt_at_most() -> None:
    """The coordinator of the next attempt has to hear of it before its session is over, 6 s where none is set."""
    parts = GroupParts(
        plan(part(0, source("S", "in"))),
        StreamsConfig({"application.id": "shop", "bootstrap.servers": "127.0.0.1:1"}),
        lambda: TopicLayout({}, {}),
        cast("Any", None),  # it leads nobody
        str(uuid.UUID(int=1)),
        embedded=False,
        clock=MockClock(),
    )
    membership = open_membership(parts, "shop-1", 1, NoState(), GroupHosts())
    assert isinstance(membership, ClassicMembership)
    session: Any = membership._session
    session._requests._connections = connections = PromptConnections()
    session._requests.heartbeat(MemberOf(1, "me"))

    assert connections.patience_s == [membership.times.patience_s] == [4]
