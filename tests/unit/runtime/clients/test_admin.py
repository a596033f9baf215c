"""Questions for offsets while leaders move: the client is told to look again, and the question is put again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from pykstreams.core.errors import ClusterError, ClusterUnavailableError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.admin import ClusterAdmin
from tests.unit.runtime.cluster_fakes import FakeClock

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Offset:
    def __init__(self, offset: int) -> None:
        self.offset = offset


class Client:
    """An administrative client that keeps what it believes of leaders until it looks at the topics."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.looked = 0
        self.asked: list[int] = []
        self.answer: Callable[[int], Exception | None] = lambda partition: None

    def list_offsets(self, specs: Mapping[Any, Any], *, request_timeout: float) -> dict[Any, Future[Offset]]:
        self.clock.advance(0.1)
        self.asked.append(len(specs))
        futures: dict[Any, Future[Offset]] = {}
        for place in specs:
            future = futures[place] = Future[Offset]()
            error = self.answer(place.partition)
            if error is None:
                future.set_result(Offset(10 + place.partition))
            else:
                future.set_exception(error)
        return futures

    def list_topics(self, *, timeout: float) -> None:
        self.looked += 1

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
