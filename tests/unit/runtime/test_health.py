"""How an application says that it is: what probes are told while a worker hangs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pykstreams import Consumed, KafkaStreams, Serdes, StreamsBuilder
from pykstreams.core.errors import StreamsError
from pykstreams.runtime.health import Health, TaskHealth
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.worker.state_updater import Failed
from pykstreams.runtime.worker_threads import WorkerThreads
from tests.unit.runtime.worker.worker_bench import ONE, WorkerBench, run

TEXT = Serdes.string()


@pytest.fixture
def bench() -> WorkerBench:
    return WorkerBench()


@pytest.fixture
def streams(bench: WorkerBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KafkaStreams:
    """An application that runs, whose worker is that of the bench."""
    builder = StreamsBuilder()
    builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT)).foreach(lambda key, value: None)
    config = {"application.id": "shop", "bootstrap.servers": "nowhere:9092", "state.dir": str(tmp_path)}
    made = KafkaStreams(builder.build(), config)
    monkeypatch.setattr(WorkerThreads, "workers", property(lambda _: [bench.worker]))
    made._life.move(State.REBALANCING)
    made._life.move(State.RUNNING)
    return made


def in_a_turn(bench: WorkerBench, monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Has the worker do one turn, within which something happens."""
    poll = bench.membership.poll

    def hangs(timeout: float = 0) -> Assignment | Lost | None:
        action()
        return poll(timeout)

    with monkeypatch.context() as patched:
        patched.setattr(bench.membership, "poll", hangs)
        bench.worker.step()


def test_health_names_a_worker_that_hangs_for_longer_than_its_group_waits_until_it_comes_back(
    bench: WorkerBench, streams: KafkaStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.assign(ONE)
    found: list[Health] = []

    def hang() -> None:
        for seconds in (300, 1):
            bench.clock.advance(seconds)
            found.append(streams.health())

    in_a_turn(bench, monkeypatch, hang)
    bench.worker.step()
    found.append(streams.health())

    tasks = {ONE: TaskHealth(True, 0)}
    assert found == [
        Health(True, True, State.RUNNING, tasks),
        Health(False, False, State.RUNNING, tasks, {"worker": 301_000}),
        Health(True, True, State.RUNNING, tasks),
    ]


def test_a_worker_that_hangs_while_it_closes_after_a_failure_is_stuck(
    bench: WorkerBench, streams: KafkaStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks are closed with it, and a processor that is closed may wait for something, too."""
    found: list[Health] = []

    def hang() -> None:
        bench.clock.advance(301)
        found.append(streams.health())

    monkeypatch.setattr(bench.updater, "stop", hang)
    with pytest.raises(StreamsError, match="disk full"):
        run(bench, lambda: bench.updater.pending.append(Failed(StreamsError("disk full"))))

    assert [(one.alive, one.ready, one.stuck) for one in found] == [(False, False, {"worker": 301_000})]
    assert bench.worker.stuck_s() is None


@pytest.mark.parametrize("is_paused", [False, True])
def test_an_application_is_not_ready_while_a_task_is_restored_whatever_its_state(
    bench: WorkerBench, streams: KafkaStreams, is_paused: bool
) -> None:
    """While it is paused it runs all the same, since nothing may be restored, and nobody waits for that."""
    bench.updater.hold = True
    if is_paused:
        bench.pause.is_set = True
    bench.assign(ONE)
    bench.worker.step()

    assert bench.worker.all_running is is_paused
    assert streams.health() == Health(True, False, State.RUNNING, {ONE: TaskHealth(False, 0)})


def test_a_task_that_is_restored_says_how_far_it_has_to_go(
    bench: WorkerBench, streams: KafkaStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.updater.hold = True
    monkeypatch.setattr(bench.updater, "remaining", lambda: {ONE: 7})
    bench.assign(ONE)

    assert streams.health().tasks == {ONE: TaskHealth(False, 7)}
