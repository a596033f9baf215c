"""What can be changed while an application runs, on an embedded cluster: its workers, and whether they work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from pykstreams import (
    Consumed,
    KafkaStreams,
    Materialized,
    QueryableStoreTypes,
    Serdes,
    StreamsBuilder,
    TaskId,
    TopicPartition,
)
from pykstreams.core.clock import SystemClock
from pykstreams.core.handlers import StreamThreadExceptionResponse
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.health import TaskHealth
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.streams import GroupMembershipOperation
from tests.brokers.quick_cluster import SHORT_SESSION

TEXT = Serdes.string()
LEAVE = GroupMembershipOperation.LEAVE_GROUP
CLIENT = "shop-client"

Make = Callable[..., KafkaStreams]


@pytest.fixture
def make(embedded_cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Make]:
    made: list[KafkaStreams] = []

    def build(function: Callable[[str], Any] = str, **more: Any) -> KafkaStreams:
        builder = StreamsBuilder()
        stream = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT)).map_values(function)
        stream.group_by_key().count(materialized=Materialized("counts"))
        config = {
            "application.id": "shop",
            "client.id": CLIENT,
            "bootstrap.servers": embedded_cluster.bootstrap_servers,
            "state.dir": str(tmp_path),
            **SHORT_SESSION,
            **more.pop("settings", {}),
        }
        made.append(KafkaStreams(builder.build(), config, **more))
        return made[-1]

    yield build
    for streams in made:
        streams.close(20_000, group_membership=LEAVE)


def send(cluster: EmbeddedCluster, *values: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for value in values:
        producer.produce("orders", value.encode(), key=b"k", partition=0)
    assert producer.flush(10) == 0


def wait_for(streams: KafkaStreams, condition: Callable[[], bool]) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + 60
    while not condition():
        assert clock.monotonic() < deadline, streams.state
        streams.wait(20)


def thread(number: int) -> str:
    return f"{CLIENT}-StreamThread-{number}"


@pytest.mark.slow
def test_a_worker_is_added_gets_tasks_and_gives_them_up_when_one_is_removed(make: Make) -> None:
    streams = make()
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 30_000)
    tasks = len(streams.health().tasks)  # later one may be on its way from one worker to the other

    assert streams.add_stream_thread() == thread(2)
    assert streams.state is State.REBALANCING
    assert streams.wait_for_state(State.RUNNING, 30_000)
    assert streams.remove_stream_thread() == thread(1)
    wait_for(streams, lambda: streams.health().ready and len(streams.health().tasks) == tasks)


@pytest.mark.slow
def test_an_application_whose_workers_are_all_gone_runs_on_and_works_again_with_a_new_one(
    make: Make, embedded_cluster: EmbeddedCluster
) -> None:
    seen: list[str] = []
    streams = make(seen.append)
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 30_000)
    assert streams.remove_stream_thread() == thread(1)
    assert streams.remove_stream_thread() is None
    assert streams.state is State.RUNNING
    send(embedded_cluster, "a")
    assert streams.add_stream_thread() == thread(1)
    wait_for(streams, lambda: seen == ["a"])

    assert streams.remove_stream_thread() == thread(1)
    assert streams.close(20_000)
    assert streams.wait() is State.NOT_RUNNING


def test_no_worker_is_added_or_removed_before_the_start_and_after_the_end(make: Make) -> None:
    streams = make()
    before = streams.add_stream_thread(), streams.remove_stream_thread()
    streams.close()
    after = streams.add_stream_thread(), streams.remove_stream_thread()

    assert (before, after) == ((None, None), (None, None))


@pytest.mark.slow
def test_a_handler_of_the_last_worker_removes_that_one_and_another_one_may_take_its_place(
    make: Make, embedded_cluster: EmbeddedCluster
) -> None:
    removed: list[str | None] = []
    calls: list[str] = []

    def once(value: str) -> str:
        calls.append(value)
        if len(calls) == 1:
            raise RuntimeError("the first time only")
        return value

    def handler(error: BaseException) -> StreamThreadExceptionResponse:
        removed.append(streams.remove_stream_thread())
        return StreamThreadExceptionResponse.REPLACE_THREAD

    streams = make(once, uncaught_exception_handler=handler)
    send(embedded_cluster, "a")
    streams.start()
    wait_for(streams, lambda: len(calls) == 2)

    assert removed == [thread(1)]
    assert streams.wait_for_state(State.RUNNING, 30_000)


@pytest.mark.slow
def test_a_paused_application_keeps_its_place_longer_than_its_session_and_its_stores_can_be_read(
    make: Make, embedded_cluster: EmbeddedCluster
) -> None:
    seen: list[str] = []
    states: list[State] = []

    def note(value: str) -> str:
        seen.append(value)
        return value

    streams = make(note, settings={"commit.interval.ms": 100}, state_listener=lambda new, old: states.append(new))
    assert not streams.is_paused
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 30_000)
    send(embedded_cluster, "a")
    counts = streams.store("counts", QueryableStoreTypes.KEY_VALUE_STORE)
    wait_for(streams, lambda: counts.get("k") == 1)
    streams.pause()
    send(embedded_cluster, "b")
    streams.wait(3_000)  # the session ends after 2 s without a sign of life

    assert (streams.is_paused, streams.state, seen) == (True, State.RUNNING, ["a"])
    assert counts.get("k") == 1
    streams.resume()
    wait_for(streams, lambda: counts.get("k") == 2)
    assert (streams.is_paused, seen, states) == (False, ["a", "b"], [State.REBALANCING, State.RUNNING])


@pytest.mark.slow
def test_an_application_that_is_paused_before_its_start_restores_nothing_until_it_goes_on(
    make: Make, embedded_cluster: EmbeddedCluster
) -> None:
    first = make(settings={"commit.interval.ms": 100})
    first.start()
    send(embedded_cluster, "a")
    wait_for(first, lambda: first.health().ready)
    counts = first.store("counts", QueryableStoreTypes.KEY_VALUE_STORE)
    wait_for(first, lambda: counts.get("k") == 1)
    first.close(20_000, group_membership=LEAVE)
    first.clean_up()

    second = make()
    second.pause()
    second.start()
    assert second.wait_for_state(State.RUNNING, 30_000)

    def restoring() -> list[TaskId]:
        return [task for task, health in second.health().tasks.items() if not health.running]

    wait_for(second, lambda: restoring() == [TaskId(0, 0)])  # the others have nothing to restore
    second.wait(500)
    assert restoring() == [TaskId(0, 0)]
    lag = second.all_local_store_partition_lags()["counts"][0]
    assert (lag.current_offset_position, lag.end_offset_position, lag.offset_lag) == (0, 1, 1)
    second.resume()
    counts = second.store("counts", QueryableStoreTypes.KEY_VALUE_STORE, enable_stale_stores=True)
    wait_for(second, lambda: second.health().tasks.get(TaskId(0, 0)) == TaskHealth(True, 0))
    assert counts.get("k") == 1


@pytest.mark.slow
def test_metadata_and_lags_of_an_application_are_those_of_its_workers_and_empty_before_and_after(
    make: Make, embedded_cluster: EmbeddedCluster
) -> None:
    streams = make(settings={"num.stream.threads": 2, "commit.interval.ms": 100})
    assert (streams.metadata_for_local_threads(), streams.all_local_store_partition_lags()) == ([], {})
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 30_000)
    send(embedded_cluster, "a", "b")

    def committed() -> dict[TopicPartition, int]:
        tasks = [task for one in streams.metadata_for_local_threads() for task in one.active_tasks]
        return {place: offset for task in tasks for place, offset in task.committed_offsets.items()}

    def states() -> list[tuple[str, str, int]]:
        found = streams.metadata_for_local_threads()
        return [(one.thread_name, one.thread_state, len(one.active_tasks)) for one in found]

    # one that comes later runs without tasks first, until the other has given up some
    wait_for(streams, lambda: states() == [(thread(1), "RUNNING", 2), (thread(2), "RUNNING", 2)])
    wait_for(streams, lambda: committed().get(TopicPartition("orders", 0)) == 2)
    tasks = [task for one in streams.metadata_for_local_threads() for task in one.active_tasks]
    assert {task.task_id for task in tasks} == {TaskId(0, number) for number in range(4)}
    assert next(task.end_offsets for task in tasks if task.task_id == TaskId(0, 0)) == {TopicPartition("orders", 0): 2}
    lags = streams.all_local_store_partition_lags()["counts"]
    assert {number: lag.offset_lag for number, lag in lags.items()} == dict.fromkeys(range(4), 0)
    assert lags[0].current_offset_position == 1
    streams.close(20_000)
    assert (streams.metadata_for_local_threads(), streams.all_local_store_partition_lags()) == ([], {})
