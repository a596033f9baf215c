"""Questions for offsets while leaders move: the client is told to look again, and the question is put again."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar

import pytest
from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from pykstreams.core.errors import ClusterError, ClusterUnavailableError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.admin import ClusterAdmin, TopicSpec
from pykstreams.runtime.clients.refused_access import Complaints
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
    def __init__(self, topics: Collection[str]) -> None:
        self.topics = dict.fromkeys(topics, Topic())


class FakeAdminClient(AdminClient):
    """An administrative client that keeps what it believes of leaders until it looks at the topics.

    It is an ``AdminClient`` for the types only: nothing of it is made.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.looked = 0
        self.topics = {"orders": 0}
        """The topics, with the number of looks after which the brokers know of them."""
        self.asked: list[int] = []
        self.created: list[str] = []
        self.isolation: IsolationLevel | None = None
        self.nothing: set[int] = set()
        """Partitions of which the next answer says nothing."""
        self.silent: Callable[[int], bool] = lambda looked: False
        """Whether the leaders are silent that it asks after so many looks."""
        self.refusals: list[int] = []
        self.answer: Callable[[int], Exception | None] = lambda partition: None

    def list_offsets(  # type: ignore[override]  # AdminClient is not what its own base class says either
        self,
        topic_partition_offsets: Mapping[Any, Any],
        *,
        request_timeout: float,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[Any, Future[Offset]]:
        self.isolation = isolation_level
        self.clock.advance(request_timeout if self.silent(self.looked) else 0.1)
        self.asked.append(len(topic_partition_offsets))
        futures: dict[Any, Future[Offset]] = {}
        for place in topic_partition_offsets:
            future = futures[place] = Future[Offset]()
            error = self.answer(place.partition)
            if place.partition in self.nothing or self.silent(self.looked):
                self.nothing.discard(place.partition)
                future.set_result(Offset(OFFSET_INVALID))
            elif error is None:
                future.set_result(Offset(10 + place.partition))
            else:
                future.set_exception(error)
        return futures

    def create_topics(  # type: ignore[override]  # as above
        self, new_topics: Any, *, request_timeout: float, operation_timeout: float, validate_only: bool
    ) -> dict[str, Future[Any]]:
        answers = {topic.topic: self._refused_or(None) for topic in new_topics}
        if not validate_only:
            self.created += answers
        return answers

    def describe_configs(  # type: ignore[override]  # as above
        self, resources: Any, *, request_timeout: float
    ) -> dict[Any, Future[Any]]:
        return {resource: self._refused_or({"retention.ms": Setting("-1")}) for resource in resources}

    def _refused_or(self, answer: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.refusals:
            future.set_exception(KafkaException(KafkaError(self.refusals.pop(0))))
        else:
            future.set_result(answer)
        return future

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        self.looked += 1
        return ClusterMetadata([name for name, since in self.topics.items() if self.looked > since])

    def poll(self, timeout: float = -1) -> int:
        self.clock.advance(timeout)
        return 0


class AdminBench:
    """An admin over a fake client, with a clock that stands still between requests."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.client = FakeAdminClient(self.clock)
        self.admin = ClusterAdmin(self.client, "broker:9092", self.clock, 40, Complaints())


@pytest.mark.parametrize("read_committed", [False, True])
def test_end_lies_before_open_transactions_where_that_is_asked_for(read_committed: bool) -> None:
    bench = AdminBench()
    bench.admin.end_offsets([P0], read_committed=read_committed)

    assert bench.client.isolation == (
        IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
    )


def test_leader_that_is_gone_costs_a_second_until_the_client_looks_who_leads() -> None:
    """Three seconds is how long a worker waits for the ends of changelogs, and serves nobody meanwhile."""
    bench = AdminBench()
    bench.client.silent = lambda looked: not looked
    began = bench.clock.monotonic()

    assert bench.admin.end_offsets([P0], timeout_s=3) == {P0: 10}
    assert bench.clock.monotonic() - began < 1.5


def test_leader_that_is_slow_gets_more_time_with_each_question() -> None:
    bench = AdminBench()
    bench.client.silent = lambda looked: looked < 4
    began = bench.clock.monotonic()

    assert bench.admin.end_offsets([P0]) == {P0: 10}
    assert bench.clock.monotonic() - began == pytest.approx(1 + 2 + 5 + 5 + 0.1, abs=0.5)


@pytest.mark.parametrize("code", [KafkaError.FENCED_LEADER_EPOCH, KafkaError._NOENT, KafkaError.LEADER_NOT_AVAILABLE])
def test_client_looks_who_leads_before_it_asks_again(code: int) -> None:
    bench = AdminBench()
    bench.client.answer = lambda partition: (
        KafkaException(KafkaError(code)) if partition == 1 and not bench.client.looked else None
    )

    assert bench.admin.end_offsets([P0, P1]) == {P0: 10, P1: 11}
    assert bench.client.asked == [2, 1]
    assert bench.client.looked == 1


def test_leader_that_stays_away_is_asked_until_the_time_is_over() -> None:
    bench = AdminBench()
    bench.client.answer = lambda partition: KafkaException(KafkaError(KafkaError._NOENT))
    began = bench.clock.monotonic()

    with pytest.raises(ClusterUnavailableError, match=r"asking for the end offset of orders-0 failed: .*_NOENT"):
        bench.admin.end_offsets([P0], timeout_s=3)

    assert 3 <= bench.clock.monotonic() - began < 4


def test_partition_that_does_not_exist_is_no_passing_matter() -> None:
    bench = AdminBench()
    bench.client.answer = lambda partition: KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    with pytest.raises(ClusterError) as raised:
        bench.admin.end_offsets([P0])

    assert not isinstance(raised.value, ClusterUnavailableError)
    assert bench.client.asked == [1]


def test_offset_that_says_nothing_is_asked_for_again() -> None:
    bench = AdminBench()
    bench.client.nothing = {1}

    assert bench.admin.beginning_offsets([P0, P1]) == {P0: 10, P1: 11}
    assert bench.client.asked == [2, 1]


def test_partition_of_a_topic_that_was_just_made_may_be_unknown_for_a_moment() -> None:
    bench = AdminBench()
    bench.client.answer = lambda partition: (
        KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)) if not bench.client.looked else None
    )

    assert bench.admin.end_offsets([P0]) == {P0: 10}


def test_topic_that_stays_unknown_may_still_be_found_later_by_a_leader_that_has_just_started() -> None:
    bench = AdminBench()
    bench.client.answer = lambda partition: KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

    with pytest.raises(ClusterUnavailableError, match=r"end offset of orders-0 failed: .*UNKNOWN_TOPIC_OR_PART"):
        bench.admin.end_offsets([P0], timeout_s=3)


def test_topics_that_were_there_are_asked_for_again_when_a_broker_does_not_know_them() -> None:
    bench = AdminBench()
    bench.client.topics = {"orders": 0, "shop-counts-changelog": 2}

    assert bench.admin.partition_counts().keys() == {"orders"}
    assert bench.admin.partition_counts(["shop-counts-changelog"]).keys() == {"orders", "shop-counts-changelog"}
    assert bench.client.looked == 3


def test_topics_that_are_gone_are_not_asked_for_for_ever() -> None:
    bench = AdminBench()
    began = bench.clock.monotonic()

    assert bench.admin.partition_counts(["shop-counts-changelog"]).keys() == {"orders"}
    assert 5 < bench.clock.monotonic() - began < 6


def test_topic_that_somebody_else_has_made_is_there() -> None:
    bench = AdminBench()
    bench.client.refusals = [KafkaError._TIMED_OUT, KafkaError.TOPIC_ALREADY_EXISTS]

    bench.admin.create_topics([TopicSpec("orders", 2, 1, {})])

    assert bench.client.refusals == []


def test_a_topic_that_its_broker_does_not_know_yet_cannot_be_created_for_the_controller_knows_it() -> None:
    bench = AdminBench()
    bench.client.refusals = [KafkaError._TIMED_OUT, KafkaError.TOPIC_ALREADY_EXISTS]

    assert not bench.admin.can_create(TopicSpec("fresh", 2, 1, {}))
    assert bench.admin.can_create(TopicSpec("fresh", 2, 1, {}))
    assert bench.client.created == []


def test_settings_of_topics_are_asked_for_again_when_the_controller_moves() -> None:
    bench = AdminBench()
    bench.client.refusals = [KafkaError._TIMED_OUT]

    assert bench.admin.topic_settings(["orders"]) == {"orders": {"retention.ms": "-1"}}
    assert bench.client.looked == 1


def test_client_that_is_closed_is_let_go_of_and_asked_for_nothing_more() -> None:
    bench = AdminBench()
    client = weakref.ref(bench.client)
    bench.admin.close()
    del bench.client

    assert client() is None
    with pytest.raises(ClusterError, match=r"the client that asks the brokers at broker:9092 is closed"):
        bench.admin.end_offsets([P0])
