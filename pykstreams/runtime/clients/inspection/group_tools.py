"""A group as a tool sees it: its members, and requests in its name while it has none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from confluent_kafka import KafkaError
from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import LeaveGroupRequest

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import CoordinatorRequests, MemberOf
from pykstreams.runtime.clients.coordinators.streams_coordinator import StreamsGroupDescribeRequest, tasks_of
from pykstreams.runtime.clients.coordinators.streams_heartbeat import NO_TASKS, Tasks
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.positions import Offsets

T = TypeVar("T")

_NOT_FOUND: Final = 69
"""GROUP_ID_NOT_FOUND: no group of this protocol has the name."""
_NO_MEMBER: Final = MemberOf(-1, "")
"""In whose name a tool commits; a coordinator takes it only while the group is empty."""
_PAUSE_S: Final = 0.1
_WHY: Final = "removed by pykstreams reset --force"


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """The facts that a coordinator knows of a member of a streams group.

    :param endpoint: the ``application.server`` of the member.
    """

    process_id: str
    endpoint: str | None
    tasks: Tasks


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member, as its coordinator knows it."""

    member_id: str
    client_id: str
    host: str
    said: bytes = b""
    """The subscription of a member of a classic group; empty while the group rebalances."""
    given: bytes = b""
    """The assignment of a member of a classic group; empty while the group rebalances."""
    of_streams: StreamsMember | None = None


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group; one that does not exist is a classic one without members."""

    protocol: Literal["classic", "streams"]
    members: tuple[GroupMember, ...]
    state: str = "Dead"
    """The state in the words of its coordinator: ``Stable``, ``Empty``, ``PreparingRebalance``, ``Reconciling``."""

    @property
    def exists(self) -> bool:
        """Whether its coordinator knows it: it has members, or has committed."""
        return self.state != "Dead"


class GroupRequests(CoordinatorRequests):
    """The coordinator of a group, for one who is no member of it; every request raises ``GroupError``."""

    def view(self) -> GroupView:
        """Asks for the members, of a streams group first."""
        found = self._streams_group()
        if found is not None:
            return found
        answer = self.ask(DescribeGroupsRequest(max_version=6, groups=[self.group.group]))
        (one,) = answer.groups
        if one.error_code != _NOT_FOUND:
            self.raise_for(one.error_code)
        members = tuple(
            GroupMember(member.member_id, member.client_id, member.client_host, *_bytes_of(member))
            for member in one.members
        )
        return GroupView("classic", members, one.group_state or "Dead")

    def _streams_group(self) -> GroupView | None:
        try:
            answer = self.ask(
                StreamsGroupDescribeRequest(group_ids=[self.group.group], include_authorized_operations=False)
            )
        except GroupError as error:
            if isinstance(error.__cause__, IncompatibleBrokerVersion):  # brokers before 4.1 have no such groups
                return None
            raise
        (one,) = answer.groups
        if one.error_code in (_NOT_FOUND, KafkaError.UNSUPPORTED_VERSION):
            return None
        self.raise_for(one.error_code)
        members = tuple(
            GroupMember(member.member_id, member.client_id, member.client_host, of_streams=_of_streams(member))
            for member in one.members
        )
        return GroupView("streams", members, one.group_state)

    def remove(self, members: Collection[GroupMember]) -> None:
        """Removes members of a classic group, static ones too."""
        answer = self.ask(
            LeaveGroupRequest(
                max_version=5,
                group_id=self.group.group,
                member_id="",
                members=[
                    LeaveGroupRequest.MemberIdentity(member_id=one.member_id, group_instance_id=None, reason=_WHY)
                    for one in members
                ],
            )
        )
        self.raise_for(answer.error_code)
        for one in answer.members or ():
            if one.error_code != KafkaError.UNKNOWN_MEMBER_ID:  # it has left meanwhile
                self.raise_for(one.error_code)


class GroupTools:
    """A group for tools: what passes is tried again for ``patience_s``, and what is refused is a ``ClusterError``."""

    def __init__(self, requests: GroupRequests, clock: Clock, patience_s: float) -> None:
        self._requests = requests
        self._clock = clock
        self._patience_s = patience_s

    def view(self) -> GroupView:
        """Asks for the members."""
        return self._asked("asking for the members", self._requests.view)

    def committed(self, partitions: Collection[TopicPartition], *, stable: bool = True) -> Offsets:
        """Reads what the group has committed.

        :param stable: whether to wait for transactions that commit offsets; otherwise what was before them counts.
        """
        return self._asked("reading the offsets", lambda: self._requests.committed(partitions, stable=stable))

    def set_offsets(self, offsets: Offsets) -> None:
        """Commits offsets for a group without members; the coordinator refuses it for one that has some."""
        self._asked("setting the offsets", lambda: self._requests.commit(_NO_MEMBER, offsets))

    def remove(self, members: Collection[GroupMember]) -> None:
        """Removes members of a classic group; those that live join again."""
        self._asked("removing members", lambda: self._requests.remove(members))

    def close(self) -> None:
        """Closes the connections."""
        self._requests.close()

    def _asked(self, doing: str, ask: Callable[[], T]) -> T:
        deadline = self._clock.monotonic() + self._patience_s
        while True:
            try:
                return ask()
            except GroupError as error:
                if error.name == "UNKNOWN_MEMBER_ID":
                    why = "the group has members again: stop all workers"
                elif error.may_pass and self._clock.monotonic() < deadline:
                    threading.Event().wait(_PAUSE_S)
                    continue
                else:
                    why = str(error)
                raise ClusterError(f"{doing} of group {self._requests.group.group!r} failed: {why}") from error


def _bytes_of(member: Any) -> tuple[bytes, bytes]:
    return bytes(member.member_metadata or b""), bytes(member.member_assignment or b"")


def _of_streams(member: Any) -> StreamsMember:
    endpoint = member.user_endpoint
    return StreamsMember(
        member.process_id,
        None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        tasks_of(member.assignment) or NO_TASKS,
    )
