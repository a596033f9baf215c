"""Committed offsets, as a member of either protocol writes and reads them."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Protocol

from pykstreams.core.clock import SystemClock
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import OncePerInterval
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings, MemberOf
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets

log = logging.getLogger(__name__)
log.addFilter(OncePerInterval(SystemClock()))  # a commit that is refused comes again in the next turn of the worker


class OffsetRequests(Protocol):
    """The requests about offsets, on a connection beside that of the session."""

    @property
    def group(self) -> GroupSettings: ...

    def commit(self, member: MemberOf, offsets: Offsets) -> None: ...

    def settled(self, partitions: Collection[TopicPartition]) -> CommittedOffsets: ...

    def close(self) -> None: ...


def put_off(error: GroupError, not_now: Collection[str]) -> None:
    """Accepts that offsets could not be committed yet.

    :param not_now: names of errors that end by themselves, besides those that always do.
    :raises ClusterError: when committing again cannot help.
    """
    if not error.may_pass and error.name not in not_now:
        raise error.as_cluster_error("committing offsets") from error
    log.info("offsets were not committed yet: %s", error)


def committed_by_now(requests: OffsetRequests, partitions: Collection[TopicPartition]) -> CommittedOffsets | None:
    """The committed offsets, as far as they are settled; ``None`` while the coordinator does not answer."""
    if not partitions:
        return CommittedOffsets({})
    try:
        return requests.settled(partitions)
    except GroupError as error:
        if not error.may_pass:
            raise error.as_cluster_error("reading committed offsets") from error
        log.info("committed offsets could not be read yet: %s", error)
        return None
