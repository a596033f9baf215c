"""Version probing: what a leader says, and what members make of it."""

from __future__ import annotations

import pytest

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.runtime.membership.protocol.versions import GroupVersions, adopted_version, group_versions


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([(11, 11)], GroupVersions(used=11, common=11, probing=False)),
        ([(11, 11), (9, 11)], GroupVersions(used=9, common=11, probing=False)),
        ([(11, 11), (9, 9)], GroupVersions(used=9, common=9, probing=False)),
        ([(11, 11), (12, 12)], GroupVersions(used=11, common=11, probing=True)),
        ([(11, 12), (11, 12)], GroupVersions(used=11, common=11, probing=False)),
    ],
)
def test_a_leader_answers_in_the_oldest_version_used(members: list[tuple[int, int]], expected: GroupVersions) -> None:
    assert group_versions(members) == expected


@pytest.mark.parametrize(
    ("sent", "received", "common", "adopted"),
    [
        (11, 11, 11, None),
        (9, 9, 11, 11),  # all have been updated
        (11, 9, 9, 9),  # a member cannot read ours
        (11, 9, 11, 11),  # a member still writes the old one, and can write ours: Java joins again, too
        (9, 9, 9, None),
    ],
)
def test_a_member_takes_up_the_latest_version_that_all_can_write(
    sent: int, received: int, common: int, adopted: int | None
) -> None:
    assert adopted_version(sent, received, common) == adopted


def test_an_answer_in_a_later_version_than_ours_is_refused() -> None:
    with pytest.raises(TaskAssignmentError, match="answered a subscription of version 9 with an assignment of version"):
        adopted_version(9, 10, 10)


def test_a_common_version_that_we_cannot_write_is_refused() -> None:
    with pytest.raises(TaskAssignmentError, match="all members can write version 12, but this one writes 11 at most"):
        adopted_version(11, 11, 12)
