"""How an application says that it is: what probes are told while a worker hangs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pykstreams import Consumed, KafkaStreams, Serdes, StreamsBuilder
from pykstreams.runtime.health import Health, TaskHealth
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.worker_threads import WorkerThreads
from tests.unit.runtime.worker.worker_bench import ONE, WorkerBench

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
