"""What user code may ask of the runtime while it processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.core.processor import OperatorContext, ProcessingContext, PunctuationType
from pykstreams.core.record import RecordMetadata
from pykstreams.core.types import Forward
from pykstreams.state import Stores
from tests.unit.runtime.tasks.fakes import Operator, TaskBench, message, node, source

WALL, STREAM = PunctuationType.WALL_CLOCK_TIME, PunctuationType.STREAM_TIME


def bench_with_context(**options: Any) -> tuple[TaskBench, ProcessingContext]:
    """A bench, and the processing context of its only node."""
    found: list[ProcessingContext] = []

    def build(context: OperatorContext) -> Forward:
        found.append(context.processing)
        return context.forward

    connected = options.pop("connected", ())
    bench = TaskBench(
        source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build), stores=connected), **options
    )
    return bench, found[0]


def test_the_context_tells_names_times_and_settings() -> None:
    bench, context = bench_with_context(config={"app.color": "red"})

    bench.feed(message("in", 3, "v", 500))

    assert (context.application_id, context.task_id) == ("shop", TaskId(0, 0))
    assert (context.current_system_time_ms(), context.current_stream_time_ms()) == (1000, 500)
    assert context.record_metadata == RecordMetadata("in", 0, 3)
    assert context.app_configs["application.id"] == "shop"
    assert context.app_configs_with_prefix("app.") == {"color": "red"}
    assert context.state_dir == Path("unused")
    assert context.metrics is bench.metrics
    assert context.key_serde is bench.config["default.key.serde"]
    assert context.value_serde is bench.config["default.value.serde"]


def test_in_punctuators_the_record_comes_from_nowhere() -> None:
    bench, context = bench_with_context()
    seen = []
    context.schedule(10, STREAM, lambda now: seen.append(context.record_metadata))

    bench.feed(message("in", 3, "v", 500))

    assert seen == [(None, -1, -1)]


def test_user_code_may_ask_for_a_commit() -> None:
    bench, context = bench_with_context()

    context.commit()
    assert bench.task.commit_requested

    bench.task.post_commit({})
    assert not bench.task.commit_requested


def fired_at(start_ms: int | None, first_due: int) -> bool:
    """Whether a schedule with that start fires first at that wall-clock time; the clock stands at 1000."""
    bench, context = bench_with_context()
    fired: list[int] = []
    context.schedule(300, WALL, fired.append, start_time=start_ms)
    bench.task.punctuate(first_due - 1)
    bench.task.punctuate(first_due)
    return fired == [first_due]


@pytest.mark.parametrize(("start", "due"), [(None, 1300), (1500, 1500), (1000, 1000), (100, 1300), (50, 1250)])
def test_a_wall_clock_schedule_is_first_due_at_its_start_or_the_next_step_after_now(
    start: int | None, due: int
) -> None:
    assert fired_at(start, due)


def test_a_stream_time_schedule_with_a_start_waits_for_it() -> None:
    bench, context = bench_with_context()
    fired: list[int] = []
    context.schedule(100, STREAM, fired.append, start_time=250)

    bench.feed(*(message("in", i, "v", time) for i, time in enumerate((10, 249, 260, 349, 350))))

    assert fired == [260, 350]


@pytest.mark.parametrize("interval", [0, -5])
def test_an_interval_below_one_is_refused(interval: int) -> None:
    _, context = bench_with_context()

    with pytest.raises(ValueError, match="interval of a punctuation is"):
        context.schedule(interval, WALL, print)


def test_a_start_before_the_epoch_is_refused() -> None:
    _, context = bench_with_context()

    with pytest.raises(ValueError, match="start time of a punctuation is -1"):
        context.schedule(5, WALL, print, start_time=-1)


def test_a_connected_store_is_given_and_another_is_refused(tmp_path: Path) -> None:
    builders = {
        name: Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), logging=False)
        for name in ("mine", "theirs")
    }
    bench, context = bench_with_context(stores=builders, connected=("mine",), directory=tmp_path)

    assert context.get_state_store("mine").name == "mine"
    with pytest.raises(StreamsError, match="NODE has no access to store 'theirs'; connected to it: 'mine'"):
        context.get_state_store("theirs")
    bench.task.close()


def test_operators_of_one_task_share_what_the_first_of_them_made() -> None:
    found: list[list[object]] = []

    def build(context: OperatorContext) -> Forward:
        found.append(context.shared("pair", list))
        return context.forward

    for _ in range(2):
        TaskBench(source("SOURCE", "in", children=("A",)), node("A", Operator(build), "B"), node("B", Operator(build)))

    assert found[0] is found[1]
    assert found[2] is found[3]
    assert found[0] is not found[2]


def test_operators_may_ask_for_partitions_and_count_what_they_drop_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    found: list[OperatorContext] = []

    def build(context: OperatorContext) -> Forward:
        found.append(context)
        return context.forward

    bench = TaskBench(source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build)), partition_count=12)
    (context,) = found
    context.count_dropped()

    assert (context.partition_count("topic"), context.default_partition(b"21", 12)) == (12, 0)
    assert (bench.dropped, caplog.records) == (1, [])
