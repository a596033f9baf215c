"""Questions for offsets while leaders move: the client is told to look again, and the question is put again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from pykstreams.core.errors import ClusterError, ClusterUnavailableError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.admin import ClusterAdmin, TopicSpec
from tests.unit.runtime.cluster_fakes import FakeClock

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Offset:
    def __init__(self, offset: int) -> None:
        self.offset = offset


class Setting:
    def __init__(self, value: str) -> None:
        self.value = value


class Topic:
    error = None
    partitions: ClassVar = {0: None, 1: None}


class ClusterMetadata:
    topics: ClassVar = {"orders": Topic()}


class Client:
    """An administrative client that keeps what it believes of leaders until it looks at the topics."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.looked = 0
        self.asked: list[int] = []
        self.nothing: set[int] = set()
        """Partitions of which the next answer says nothing."""
        self.refusals: list[int] = []
        self.answer: Callable[[int], Exception | None] = lambda partition: None

    def list_offsets(self, specs: Mapping[Any, Any], *, request_timeout: float) -> dict[Any, Future[Offset]]:
        self.clock.advance(0.1)
        self.asked.append(len(specs))
        futures: dict[Any, Future[Offset]] = {}
        for place in specs:
            future = futures[place] = Future[Offset]()
            error = self.answer(place.partition)
            if place.partition in self.nothing:
                self.nothing.remove(place.partition)
                future.set_result(Offset(OFFSET_INVALID))
            elif error is None:
                future.set_result(Offset(10 + place.partition))
            else:
                future.set_exception(error)
        return futures

    def create_topics(self, topics: Any, *, request_timeout: float, operation_timeout: float) -> dict[str, Future[Any]]:
        return {topic.topic: self._refused_or(None) for topic in topics}

    def describe_configs(self, resources: Any, *, request_timeout: float) -> dict[Any, Future[Any]]:
        return {resource: self._refused_or({"retention.ms": Setting("-1")}) for resource in resources}

    def _refused_or(self, answer: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.refusals:
            future.set_exception(KafkaException(KafkaError(self.refusals.pop(0))))
        else:
            future.set_result(answer)
        return future

    def list_topics(self, *, timeout: float) -> Any:
        self.looked += 1
        return ClusterMetadata()

    def poll(self, timeout: float) -> int:
        self.clock.advance(timeout)
        return 0


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.client = Client(self.clock)
        self.admin = ClusterAdmin(self.client, "broker:9092", self.clock, 40, [])  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [KafkaError.FENCED_LEADER_EPOCH, KafkaError._NOENT, KafkaError.LEADER_NOT_AVAILABLE])
def test_client_looks_who_leads_before_it_asks_again(code: int) -> None:
    world = World()
    world.client.answer = lambda partition: (
        KafkaException(KafkaError(code)) if partition == 1 and not world.client.looked else None
    )

    assert world.admin.end_offsets([P0, P1]) == {P0: 10, P1: 11}
    assert world.client.asked == [2, 1]
    assert world.client.looked == 1


def test_leader_that_stays_away_is_asked_until_the_time_is_over() -> None:
    world = World()
    world.client.answer = lambda partition: KafkaException(KafkaError(KafkaError._NOENT))
    began = world.clock.monotonic()

    with pytest.raises(ClusterUnavailableError, match=r"asking for the end offset of orders-0 failed: .*_NOENT"):
        world.admin.end_offsets([P0], timeout_s=3)

    assert 3 <= world.clock.monotonic() - began < 4


def test_partition_that_does_not_exist_is_no_passing_matter() -> None:
    world = World()
    world.client.answer = lambda partition: KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    with pytest.raises(ClusterError) as raised:
        world.admin.end_offsets([P0])

    assert not isinstance(raised.value, ClusterUnavailableError)
    assert world.client.asked == [1]


def test_offset_that_says_nothing_is_asked_for_again() -> None:
    world = World()
    world.client.nothing = {1}

    assert world.admin.beginning_offsets([P0, P1]) == {P0: 10, P1: 11}
    assert world.client.asked == [2, 1]


def test_partition_of_a_topic_that_was_just_made_may_be_unknown_for_a_moment() -> None:
    world = World()
    world.client.answer = lambda partition: (
        KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)) if not world.client.looked else None
    )

    assert world.admin.end_offsets([P0]) == {P0: 10}


def test_topic_that_stays_unknown_is_no_passing_matter() -> None:
    world = World()
    world.client.answer = lambda partition: KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

    with pytest.raises(ClusterError, match=r"end offset of orders-0 failed: .*UNKNOWN_TOPIC_OR_PART") as raised:
        world.admin.end_offsets([P0], timeout_s=3)

    assert not isinstance(raised.value, ClusterUnavailableError)


def test_topic_that_somebody_else_has_made_is_there() -> None:
    world = World()
    world.client.refusals = [KafkaError._TIMED_OUT, KafkaError.TOPIC_ALREADY_EXISTS]

    world.admin.create_topics([TopicSpec("orders", 2, 1, {})])

    assert world.client.refusals == []


def test_settings_of_topics_are_asked_for_again_when_the_controller_moves() -> None:
    world = World()
    world.client.refusals = [KafkaError._TIMED_OUT]

    assert world.admin.topic_settings(["orders"]) == {"orders": {"retention.ms": "-1"}}
    assert world.client.looked == 1
