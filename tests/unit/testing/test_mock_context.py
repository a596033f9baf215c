"""The context for testing a processor alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykstreams import Processor, ProcessorContext, PunctuationType, Record, Serdes
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.state import Stores
from pykstreams.testing import CapturedForward, MockProcessorContext


class Greeter(Processor[str, str, str, object]):
    def init(self, context: ProcessorContext[str, object]) -> None:
        super().init(context)
        self.schedule = context.schedule(60_000, PunctuationType.STREAM_TIME, self.tick, start_time=5)

    def tick(self, now: int) -> None:
        self.context.forward(Record("tick", now, now), "ticks")

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.replace(value=f"hello {record.value}"))
        if record.value == "you":
            self.context.commit()


def started() -> tuple[MockProcessorContext, Greeter]:
    context = MockProcessorContext()
    processor = Greeter()
    processor.init(context)
    return context, processor


def test_a_context_says_its_task_and_how_much_was_forwarded() -> None:
    context = MockProcessorContext()
    context.forward(Record("a", 1, 0))

    assert repr(context) == "<MockProcessorContext of task 0_0 with 1 forward>"


def test_forwarded_records_are_noted_until_they_are_forgotten() -> None:
    context, processor = started()

    processor.process(Record("k", "me", 3))

    assert context.forwarded() == [CapturedForward(Record("k", "hello me", 3))]
    context.reset_forwards()
    assert context.forwarded() == []


def test_schedules_are_noted_and_fire_when_a_test_calls_them() -> None:
    context, processor = started()

    (found,) = context.scheduled_punctuators
    found.punctuator(99)

    assert repr(found) == "<CapturedPunctuator each 60000 ms of STREAM_TIME>"
    assert (found.interval_ms, found.punctuation_type, found.start_time) == (60_000, PunctuationType.STREAM_TIME, 5)
    assert context.forwarded("ticks") == [CapturedForward(Record("tick", 99, 99), "ticks")]
    assert context.forwarded("others") == []
    processor.schedule.cancel()
    assert found.cancelled


def test_commits_are_noted() -> None:
    context, processor = started()
    assert not context.committed

    processor.process(Record("k", "you", 3))
    assert context.committed

    context.reset_commit()
    assert not context.committed


def test_what_a_test_sets_is_what_a_processor_sees(tmp_path: Path) -> None:
    context = MockProcessorContext(
        {"application.id": "shop", "app.color": "red", "default.key.serde": Serdes.string()},
        task_id=TaskId(1, 2),
        state_dir=tmp_path,
    )
    assert context.record_metadata is None

    context.set_record_metadata("orders", 1, 7)
    context.set_current_system_time_ms(11)
    context.set_current_stream_time_ms(12)

    assert context.record_metadata == ("orders", 1, 7)
    assert (context.current_system_time_ms(), context.current_stream_time_ms()) == (11, 12)
    assert (context.application_id, context.task_id, context.state_dir) == ("shop", TaskId(1, 2), tmp_path)
    assert context.app_configs_with_prefix("app.") == {"color": "red"}


def test_a_store_can_be_opened_and_used() -> None:
    context = MockProcessorContext()
    store = Stores.key_value_store_builder(
        Stores.persistent_key_value_store("counts"), Serdes.string(), Serdes.long(), logging=False
    ).build()
    store.init(context.state_store_context)
    context.add_state_store(store)

    context.get_state_store("counts").put("a", 1)

    assert store.get("a") == 1
    store.close()


def test_a_store_that_was_not_added_is_an_error() -> None:
    with pytest.raises(StreamsError, match="store 'counts' was not added; call add_state_store first"):
        MockProcessorContext().get_state_store("counts")


def test_an_interval_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="it must be at least 1 ms"):
        MockProcessorContext().schedule(0, PunctuationType.STREAM_TIME, print)
