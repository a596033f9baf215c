"""What comes among the records of a fetch: what passes is waited out, and what does not is raised."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Message

from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients.consumers.messages import Fetched, without_events


def failed(code: int) -> Message:
    return Message(topic="orders", partition=1, error=KafkaError(code, "the text"))


def record() -> Message:
    return Message(topic="orders", partition=1, offset=3, value=b"v")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "UNKNOWN_TOPIC_OR_PART"),
        (KafkaError.NOT_LEADER_FOR_PARTITION, "NOT_LEADER_FOR_PARTITION"),
        (KafkaError.UNKNOWN, "UNKNOWN"),
    ],
)
def test_partition_that_a_broker_cannot_give_for_the_moment_is_held_up(code: int, name: str) -> None:
    fetched = Fetched()
    left = without_events([failed(code), kept := record()], fetched)

    assert left == [kept]
    assert fetched.held_up == {"orders-1": f"the text ({name})"}


def test_partition_that_may_not_be_read_is_an_error() -> None:
    with pytest.raises(ClusterError, match=r"reading orders-1 failed: the text \(TOPIC_AUTHORIZATION_FAILED\)"):
        without_events([failed(KafkaError.TOPIC_AUTHORIZATION_FAILED)], Fetched())
