"""The group that remembers a replay, as one who is no member of it sees it.

No replay ever joins its group, so a group with members is one of something else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.inspection.group_tools import GroupRequests, GroupTools, GroupView
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.dead_letters.progress import Replayed


class RememberingGroup(Protocol):
    """The methods of a group that a replay, or a list of letters, asks."""

    def view(self) -> GroupView: ...

    def committed(self, partitions: Collection[TopicPartition], *, stable: bool) -> Offsets: ...


@contextmanager
def opened_group(config: StreamsConfig, *, embedded: bool) -> Iterator[RememberingGroup]:
    """Yields the group that ``application.id`` names; its connections are closed afterwards.

    :param embedded: whether the cluster is an embedded one.
    """
    clock = SystemClock()
    requests = GroupRequests.open(config, f"{config.application_id}-look", thread=None, embedded=embedded)
    group = GroupTools(requests, clock, config.request_timeout_ms / 1000)
    try:
        yield group
    finally:
        group.close()


def check_unused(group_id: str, group: RememberingGroup) -> None:
    """Raises ``ClusterError`` for a group that has members: a replay would commit among their offsets."""
    members = group.view().members
    if members:
        listed = "".join(f"\n- {one.member_id} (client {one.client_id}, {one.host})" for one in members)
        raise ClusterError(
            f"group {group_id!r} has {len(members)} members, so it is that of an application that runs, among whose "
            "offsets a replay would commit; leave --group out, or name a group that nothing else uses (a replay needs "
            f"no group of its application: records are sent to the topics that it reads):{listed}"
        )


def replayed_letters(group: RememberingGroup, places: Collection[TopicPartition]) -> Mapping[TopicPartition, Replayed]:
    """Reads which letters of partitions a group has replayed; ``StreamsError`` where it is no group of replays.

    A replay that is being sent, or was killed a moment ago, does not count yet.
    """
    committed = group.committed(places, stable=False) if places else {}
    return {place: Replayed(*committed.get(place, (0, ""))) for place in places}
