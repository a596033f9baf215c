"""Leading a group by what the cluster says."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykstreams.core.errors import MissingSourceTopicError, TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.classic import leadership as module
from pykstreams.runtime.membership.classic.leadership import Leadership
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AssignmentInfo, decode_assignment
from pykstreams.runtime.membership.protocol.consumer_protocol import ConsumerSubscription, decode_consumer_assignment
from pykstreams.runtime.membership.protocol.subscription_info import SubscriptionInfo
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.testing.clock import MockClock

LAYOUT = TopicLayout({"a": 2}, {TaskId(0, n): frozenset({TopicPartition("a", n)}) for n in range(2)})
ME = ProcessId(uuid.UUID(int=1))
SAID = ConsumerSubscription(frozenset({"a"}), SubscriptionInfo(ME, {}).encode()).encode()


class Cluster:
    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def racks(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, frozenset[str]]:
        return {}


def answers(subscriptions: dict[str, bytes], *, topic_is_missing: bool = False) -> dict[str, AssignmentInfo]:
    def prepare() -> TopicLayout:
        if topic_is_missing:
            raise MissingSourceTopicError("no a")
        return LAYOUT

    leadership = Leadership(
        cast("Any", SimpleNamespace(subtopologies=[SimpleNamespace(id=0, changelogs={})])),
        prepare=prepare,
        cluster=Cluster(),
        committed=lambda _: {},
        configs=AssignmentConfigs(),
        process_id=ME,
        clock=MockClock(),
    )
    given = leadership.assign(subscriptions)
    return {name: decode_assignment(decode_consumer_assignment(data).user_data) for name, data in given.items()}


def test_all_are_told_of_a_missing_source_topic() -> None:
    given = answers({"m1": SAID, "m2": SAID}, topic_is_missing=True)
    assert {name: info.error for name, info in given.items()} == {"m1": 1, "m2": 1}


@pytest.mark.parametrize("said", [b"", b"\0\3", ConsumerSubscription(frozenset(), b"?").encode()])
def test_a_subscription_that_cannot_be_read_ends_only_its_sender(said: bytes) -> None:
    given = answers({"m1": SAID, "m2": said})
    assert (given["m1"].error, len(given["m1"].active)) == (0, 2)
    assert (given["m2"].error, given["m2"].active) == (3, ())


def test_all_are_told_when_tasks_cannot_be_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TaskAssignmentError("no way")

    monkeypatch.setattr(module, "lead", fail)
    assert {name: info.error for name, info in answers({"m1": SAID, "m2": SAID}).items()} == {"m1": 3, "m2": 3}
