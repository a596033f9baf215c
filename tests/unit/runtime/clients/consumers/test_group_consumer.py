"""The offsets of a group, as who is no member of it commits them."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from pykstreams.runtime.clients.consumers.group_consumer import GroupConsumer


@pytest.mark.parametrize("code", [KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_commit_that_a_moment_later_may_succeed_is_tried_again(code: int) -> None:
    """Of a topic that was deleted the topic watch tells, by its name."""
    assert GroupConsumer._not_committed(KafkaException(KafkaError(code))) is False
