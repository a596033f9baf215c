"""The member of the group: what it makes of that which the group tells it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from pykstreams.core.errors import ConfigError, TaskMigratedError
from pykstreams.runtime.clients.group_consumer import GroupConsumer


class Event:
    def __init__(self, error: KafkaError) -> None:
        self._error = error

    def error(self) -> KafkaError:
        return self._error


class Answering(Consumer):
    """A client that reaches no broker, and gives what a test wants it to have received."""

    def __init__(self, *events: Event) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:1", "group.id": "shop", "log_level": 0})
        self._events = list(events)

    def poll(self, timeout: float = -1) -> Any:
        return self._events.pop(0) if self._events else None


def test_members_of_java_are_named_with_the_cure_and_not_each_time_that_joining_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusal = KafkaError(KafkaError.INCONSISTENT_GROUP_PROTOCOL, "JoinGroup failed: Inconsistent group protocol")
    group = GroupConsumer(Answering(Event(refusal), Event(refusal)), 1.0)
    with caplog.at_level(logging.WARNING):
        group.poll(0)
        group.poll(0)
    [message] = caplog.messages

    assert "Java application" in message
    assert "LEAVE_GROUP" in message
    assert "Inconsistent group protocol" in message


def test_worker_whose_instance_id_another_has_taken_says_so() -> None:
    fenced = KafkaError(KafkaError.FENCED_INSTANCE_ID)
    in_the_group = KafkaError(KafkaError._FATAL, f"Fatal error: {fenced.str()}: Fatal consumer error: {fenced.str()}")

    with pytest.raises(ConfigError, match=r"group\.instance\.id of this one; give each worker .* an id of its own"):
        GroupConsumer(Answering(Event(in_the_group)), 1.0).poll(0)
    with pytest.raises(ConfigError, match="an id of its own"):
        GroupConsumer._not_committed(KafkaException(fenced))


def test_fatal_error_of_a_member_is_not_waited_out() -> None:
    failure = KafkaError(KafkaError._FATAL, "Fatal error: something")

    with pytest.raises(TaskMigratedError, match=r"put out of the group: Fatal error: something \(_FATAL\)"):
        GroupConsumer(Answering(Event(failure)), 1.0).poll(0)


@pytest.mark.parametrize("code", [KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_commit_that_a_moment_later_may_succeed_is_tried_again(code: int) -> None:
    """Of a topic that was deleted the topic watch tells, by its name."""
    assert GroupConsumer._not_committed(KafkaException(KafkaError(code))) is False
