"""Records that are read from outside: what keeps them from coming is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients import plain_records
from pykstreams.runtime.clients.plain_records import PlainRecords
from tests.unit.runtime.cluster_fakes import FakeClock


class FakeConsumer:
    """A consumer of a topic with one partition, whose every answer is an error."""

    error: KafkaError
    polls = 0

    def __init__(self, settings: dict[str, Any]) -> None:
        assert settings["isolation.level"] == "read_committed"

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def assign(self, partitions: list[Any]) -> None:
        assert [place.partition for place in partitions] == [0]

    def poll(self, timeout: float) -> Any:
        type(self).polls += 1
        clock.advance(timeout)
        return SimpleNamespace(error=lambda: self.error)

    def close(self) -> None:
        """Nothing is open."""


clock = FakeClock()


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> PlainRecords:
    monkeypatch.setattr(plain_records, "Consumer", FakeConsumer)
    monkeypatch.setattr(FakeConsumer, "polls", 0)
    return PlainRecords("one:1", clock)


def test_refused_reading_is_an_error_at_once(records: PlainRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not for you")
    monkeypatch.setattr(FakeConsumer, "error", refused, raising=False)

    with pytest.raises(ClusterError, match=r"reading topic 'orders'.*not for you"):
        records.read("orders", {}, lambda record: True, 30)
    assert FakeConsumer.polls == 1


def test_brokers_that_are_away_are_waited_for(records: PlainRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeConsumer, "error", KafkaError(KafkaError._TRANSPORT, "gone"), raising=False)

    records.read("orders", {}, lambda record: True, 1)

    assert FakeConsumer.polls > 1
