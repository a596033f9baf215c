"""The versions of user data, and how a group agrees on one (version probing).

Members say which version their subscription is written in, and the latest that they can write. The leader answers in
the oldest version that anybody used, and says which is the latest that all can write. Who then can write a later one
than it used, or used one that another cannot read, takes up the latter and joins again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pykstreams.core.errors import TaskAssignmentError

EARLIEST_VERSION: Final = 7
"""The first with offset sums (Kafka Streams 2.6); older ones are neither read nor written."""
LATEST_VERSION: Final = 11
"""The latest of Kafka Streams 4.3.1."""


@dataclass(frozen=True, slots=True)
class GroupVersions:
    """The versions of a group, as its leader finds them."""

    used: int
    """The one that assignments are written in."""
    common: int
    """The latest that all members can write."""
    probing: bool
    """Whether a member used a later version than this release can read, and has to join again."""


def group_versions(members: Iterable[tuple[int, int]]) -> GroupVersions:
    """Returns what a leader says to members with these used and latest versions.

    >>> group_versions([(11, 11), (9, 11), (12, 12)])
    GroupVersions(used=9, common=11, probing=True)
    """
    used, latest = LATEST_VERSION, LATEST_VERSION
    probing = False
    for member_used, member_latest in members:
        probing |= member_used > LATEST_VERSION
        used = min(used, member_used)
        latest = min(latest, member_latest)
    return GroupVersions(used, latest, probing)


def adopted_version(sent: int, received: int, common: int) -> int | None:
    """Returns the version to join again with, ``None``: no need to.

    :param sent: the version of our subscription.
    :param received: the version of the assignment that came back.
    :param common: the latest version that all members can write, as the assignment says.

    >>> adopted_version(9, 9, 11), adopted_version(11, 10, 10), adopted_version(11, 11, 11)
    (11, 10, None)
    """
    if received > sent:
        raise TaskAssignmentError(
            f"the leader answered a subscription of version {sent} with an assignment of version {received}, "
            "which only a leader with a defect does; look at the log of the leader"
        )
    if common > LATEST_VERSION:
        raise TaskAssignmentError(
            f"the leader says that all members can write version {common}, but this one writes {LATEST_VERSION} at "
            "most; look at the log of the leader"
        )
    return common if common > sent or received < sent else None
