"""What changes while an application runs, on a real broker: workers come and go, tasks pause, members leave or stay."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pykstreams import (
    Consumed,
    GroupMembershipOperation,
    KafkaStreams,
    Materialized,
    Produced,
    Serdes,
    StandbyUpdateListener,
    State,
    StreamsBuilder,
    SuspendReason,
    TaskId,
    TopicPartition,
)
from pykstreams.query import KeyQuery, Position, PositionBound
from pykstreams.runtime.clients.coordinators.coordinator_requests import MemberOf
from pykstreams.runtime.clients.coordinators.group_coordinator import GroupCoordinator
from tests.brokers.producers import producer_in_order
from tests.brokers.records import counts_by_key, partition_of, records_of

pytestmark = pytest.mark.slow

TEXT = Serdes.string()
PARTITIONS, KEYS = 4, [f"key-{number}" for number in range(40)]
SESSION_MS = 6_000
HEARTBEAT_MS = 1_000
PATIENCE_S = 60.0
LEAVE, REMAIN = GroupMembershipOperation.LEAVE_GROUP, GroupMembershipOperation.REMAIN_IN_GROUP

Make = Callable[..., KafkaStreams]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Shop:
    """An application that counts how often each key comes, with every count in a topic."""

    def __init__(self, brokers: str, name: str, folder: Path, make_topic: Callable[..., str], stack: ExitStack) -> None:
        self.brokers, self.name = brokers, name
        self.orders = make_topic(f"{name}-orders", partitions=PARTITIONS)
        self.counts = make_topic(f"{name}-counts", partitions=PARTITIONS)
        self.sent: Counter[str] = Counter()
        self._folder = folder
        self._stack = stack
        self._admin = AdminClient({"bootstrap.servers": brokers})
        self._producer = producer_in_order(brokers, {"partitioner": "murmur2_random"})

    def instance(
        self,
        number: int = 1,
        settings: Mapping[str, object] | None = None,
        listener: StandbyUpdateListener | None = None,
    ) -> KafkaStreams:
        builder = StreamsBuilder()
        counts = (
            builder.stream(self.orders, Consumed(key_serde=TEXT, value_serde=TEXT))
            .group_by_key()
            .count(materialized=Materialized("counts"))
        )
        counts.to_stream().to(self.counts, Produced(key_serde=TEXT, value_serde=Serdes.long()))
        config = {
            "application.id": self.name,
            "bootstrap.servers": self.brokers,
            "state.dir": str(self._folder / str(number)),
            "processing.guarantee": "exactly_once_v2",
            "statestore.cache.max.bytes": 0,
            "consumer.auto.offset.reset": "earliest",
            "consumer.session.timeout.ms": SESSION_MS,
            **(settings or {}),
        }
        streams = KafkaStreams(builder.build(), config, standby_update_listener=listener)
        self._stack.callback(streams.close, 30_000, group_membership=LEAVE)
        return streams

    def bound(self) -> PositionBound:
        """That of all orders that are there now."""
        position = Position()
        for record in records_of(self.brokers, [self.orders]):
            position.with_component(self.orders, partition_of(record), record.offset() or 0)
        return PositionBound.at(position)

    def send(self, rounds: int) -> None:
        for _ in range(rounds):
            for key in KEYS:
                self._producer.produce(self.orders, key=key, value="order")
                self.sent[key] += 1
            assert self._producer.flush(60) == 0

    def results(self) -> dict[str, list[int]]:
        return counts_by_key(records_of(self.brokers, [self.counts]))

    def has_counted_all(self) -> bool:
        return {key: counts[-1] for key, counts in self.results().items()} == self.sent

    def members(self) -> set[str]:
        """The members of the group, by their ids or the ids of their instances."""
        group = self._admin.describe_consumer_groups([self.name])[self.name]
        return {one.group_instance_id or one.member_id for one in group.result(30).members}


@pytest.fixture
def shop(
    bootstrap_servers: str,
    make_name: Callable[[str], str],
    make_topic: Callable[..., str],
    tmp_path: Path,
    stack: ExitStack,
) -> Shop:
    return Shop(bootstrap_servers, make_name("shop"), tmp_path, make_topic, stack)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def count_heartbeats(monkeypatch: pytest.MonkeyPatch) -> list[MemberOf]:
    """Has heartbeats of this process noted in the list that is returned, when the group has taken them."""
    noted: list[MemberOf] = []
    heartbeat = GroupCoordinator.heartbeat

    def noting(coordinator: GroupCoordinator, member: MemberOf) -> None:
        heartbeat(coordinator, member)
        noted.append(member)

    monkeypatch.setattr(GroupCoordinator, "heartbeat", noting)
    return noted


def polls(streams: KafkaStreams) -> float:
    """How often the workers have polled."""
    return sum(float(one.value) for name, one in streams.metrics().items() if name.name == "poll-total")


def test_workers_come_and_go_under_load_and_every_record_counts_once(shop: Shop) -> None:
    streams = shop.instance()
    streams.start()
    enough = threading.Event()

    def write() -> None:
        while not enough.is_set():
            shop.send(1)

    writer = threading.Thread(target=write)
    writer.start()
    assert streams.wait_for_state(State.RUNNING, 60_000)
    names = [streams.add_stream_thread(), streams.add_stream_thread()]
    assert streams.wait_for_state(State.RUNNING, 60_000)
    wait_until(lambda: all(one.active_tasks for one in streams.metadata_for_local_threads()))
    assert len(shop.members()) == 3
    removed = streams.remove_stream_thread()
    assert len(shop.members()) == 2
    assert streams.add_stream_thread() == removed
    assert streams.remove_stream_thread(30_000) == names[0]
    enough.set()
    writer.join()
    wait_until(shop.has_counted_all)

    assert shop.results() == {key: list(range(1, count + 1)) for key, count in shop.sent.items()}

    def tasks() -> list[TaskId]:
        return [task.task_id for one in streams.metadata_for_local_threads() for task in one.active_tasks]

    found: list[TaskId] = []

    def all_are_there() -> bool:
        found[:] = tasks()
        return len(found) >= PARTITIONS

    wait_until(all_are_there)  # one that is on its way between two threads is nobody's
    assert len(found) == len(set(found)) == PARTITIONS


def test_a_pause_longer_than_the_session_keeps_members_and_tasks_and_loses_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeats = count_heartbeats(monkeypatch)
    streams = shop.instance(settings={"consumer.heartbeat.interval.ms": HEARTBEAT_MS})
    states: list[State] = []
    streams.start()
    shop.send(1)
    wait_until(shop.has_counted_all)
    members = shop.members()
    streams.state_listener = lambda new, old: states.append(new)
    streams.pause()
    polled = polls(streams)
    wait_until(lambda: polls(streams) >= polled + 2)  # of which the second is of a turn that has seen the pause
    shop.send(1)
    enough = len(heartbeats) + SESSION_MS // HEARTBEAT_MS + 2
    wait_until(lambda: len(heartbeats) >= enough)

    assert shop.members() == members
    assert shop.results() == {key: [1] for key in KEYS}
    assert states == []
    streams.resume()
    wait_until(shop.has_counted_all)
    assert shop.results() == {key: [1, 2] for key in KEYS}


@pytest.mark.parametrize("instance", [None, "till"])
def test_members_leave_at_once_or_remain_as_close_is_told(shop: Shop, instance: str | None) -> None:
    settings: dict[str, object] = {} if instance is None else {"consumer.group.instance.id": instance}
    first = shop.instance(settings=settings)
    first.start()
    assert first.wait_for_state(State.RUNNING, 60_000)
    members = shop.members()
    assert first.close(30_000, group_membership=REMAIN)
    remaining = shop.members()
    second = shop.instance(settings=settings)
    second.start()
    assert second.wait_for_state(State.RUNNING, 60_000)
    assert second.close(30_000, group_membership=LEAVE)

    assert len(members) == 1
    assert remaining == members
    assert shop.members() == set()


class Reasons(StandbyUpdateListener):
    """Notes how far copies were loaded, and why they ended."""

    def __init__(self) -> None:
        self.loaded: dict[int, int] = {}
        self.ended: dict[int, SuspendReason] = {}

    def on_batch_loaded(
        self,
        topic_partition: TopicPartition,
        store_name: str,
        task_id: TaskId,
        batch_end_offset: int,
        batch_size: int,
        current_end_offset: int,
    ) -> None:
        self.loaded[task_id.partition] = batch_end_offset

    def on_update_suspended(
        self,
        topic_partition: TopicPartition,
        store_name: str,
        store_offset: int,
        current_end_offset: int,
        reason: SuspendReason,
    ) -> None:
        self.ended[topic_partition.partition] = reason


def test_copies_answer_within_a_bound_lag_by_nothing_and_tell_that_they_take_over(shop: Shop) -> None:
    reasons = Reasons()
    settings = {"num.standby.replicas": 1, "commit.interval.ms": 100}
    one, two = shop.instance(1, settings, reasons), shop.instance(2, settings)
    one.start()
    two.start()
    shop.send(3)

    def copies() -> set[int]:
        return {task.task_id.partition for found in one.metadata_for_local_threads() for task in found.standby_tasks}

    wait_until(lambda: len(copies()) == PARTITIONS // 2)
    shop.send(1)  # a copy that was an active task of the same instance has the first rows without loading them
    bound = shop.bound()

    def answers() -> dict[int, bool]:
        asked = one.query("counts", KeyQuery[str, int](KEYS[0]), position_bound=bound)
        return {number: found.is_success for number, found in asked.partition_results.items()}

    wait_until(lambda: answers() == dict.fromkeys(range(PARTITIONS), True))

    def lags() -> dict[int, int]:
        found = one.all_local_store_partition_lags()["counts"]
        return {number: lag.offset_lag for number, lag in found.items()}

    wait_until(lambda: lags() == dict.fromkeys(range(PARTITIONS), 0))  # markers of transactions come after the rows
    copied = copies()
    assert two.close(30_000, group_membership=LEAVE)
    wait_until(lambda: one.health().ready and len(one.health().tasks) == PARTITIONS)

    assert set(reasons.loaded) >= copied
    assert {number: reasons.ended[number] for number in copied} == dict.fromkeys(copied, SuspendReason.PROMOTED)
