"""Records that cannot be read or processed: who is asked, what is sent, what is said."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from typing import Any

import pytest

from pykstreams.core.errors import ClusterUnavailableError, ProcessingError, SerdeError, StoreEngineError, StreamsError
from pykstreams.core.handlers import ErrorHandlerContext, ErrorHandlerResponse
from pykstreams.core.ids import TaskId
from pykstreams.core.processor import OperatorContext, PunctuationType
from pykstreams.core.record import ProducerRecord
from pykstreams.core.types import Forward, Headers
from pykstreams.processors import Branch, Filter, FilterNothing, MapValues, PassThrough, Peek
from pykstreams.serdes import Serdes
from pykstreams.testing.records import ProducedRecord
from pykstreams.topology.plan import Node
from tests.unit.runtime.tasks.fakes import Operator, TaskBench, each, message, node, sink, source

CONTINUE = {
    "processing.exception.handler": "pykstreams.core.handlers:LogAndContinueProcessingExceptionHandler",
    "deserialization.exception.handler": "pykstreams.core.handlers:LogAndContinueExceptionHandler",
}
DEAD_LETTERS = {"errors.dead.letter.queue.topic.name": "dlq"}


def boom(key: str, value: str) -> str:
    if value == "bad":
        raise ValueError("boom")
    return value


def chain(config: dict[str, Any] | None = None) -> TaskBench:
    return TaskBench(
        source("SOURCE", "in", children=("UPPER",)),
        node("UPPER", each(lambda key, value: value), "NODE"),
        node("NODE", each(boom), "SINK"),
        sink("SINK", "out"),
        config=config,
    )


def longs(config: dict[str, Any] | None = None) -> TaskBench:
    return TaskBench(
        source("SOURCE", "in", children=("SINK",), value_deserializer=Serdes.long().deserializer),
        sink("SINK", "out", value_serializer=Serdes.long().serializer),
        config=config,
    )


def test_an_exception_of_user_code_says_node_record_function_and_values() -> None:
    bench = chain()

    with pytest.raises(ProcessingError) as found:
        bench.feed(message("in", 7, "bad", 5))

    error = found.value
    assert (error.node, error.topic, error.partition, error.offset, error.task_id) == ("NODE", "in", 0, 7, TaskId(0, 0))
    text = str(error)
    line = boom.__code__.co_firstlineno + 2
    assert text.startswith(
        f"{__name__}.boom (line {line}) raised ValueError('boom'); NODE failed at record in-0 offset 7"
    )
    assert "of task 0_0; key='k', value='bad'" in text
    assert "processing.exception.handler" in text
    assert isinstance(error.__cause__, ValueError)


def test_an_exception_of_a_library_is_told_with_the_line_of_the_user_that_called_it() -> None:
    def parse(value: str) -> int:
        return int(json.loads(value))

    line = parse.__code__.co_firstlineno + 1
    bench = TaskBench(
        source("SOURCE", "in", children=("NODE",)), node("NODE", MapValues(parse), "SINK"), sink("SINK", "out")
    )

    with pytest.raises(ProcessingError) as found:
        bench.feed(message("in", 7, "bad", 5))

    assert str(found.value).startswith(f"{parse.__module__}.{parse.__qualname__} (line {line}) raised JSONDecodeError(")


def test_long_values_are_cut_short_and_values_that_cannot_be_shown_do_not_hide_the_error() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    bench = TaskBench(
        source("SOURCE", "in", children=("A",)),
        node("A", each(lambda key, value: Shy() if value == "shy" else value), "B"),
        node("B", each(lambda key, value: 1 / 0)),
    )

    with pytest.raises(ProcessingError, match=r"value='x{119}\.\.\.;"):
        bench.feed(message("in", 0, "x" * 500, 5))
    with pytest.raises(ProcessingError, match="value=<a value whose repr raised RuntimeError>"):
        bench.feed(message("in", 1, "shy", 5))


def test_the_innermost_node_is_asked_and_nobody_above_it() -> None:
    asked = []

    def handler(context: ErrorHandlerContext, record: Any, exception: Exception) -> ErrorHandlerResponse:
        asked.append((context.processor_node_id, record.value, str(exception)))
        return ErrorHandlerResponse.fail()

    bench = chain({"processing.exception.handler": handler})

    with pytest.raises(ProcessingError, match="NODE failed"):
        bench.feed(message("in", 0, "bad", 5))

    assert asked == [("NODE", "bad", "boom")]


def test_a_handler_that_goes_on_drops_the_record_at_its_node() -> None:
    bench = chain(CONTINUE)

    bench.feed(*(message("in", i, value, i) for i, value in enumerate(("a", "bad", "b"))))

    assert bench.values() == ["a", "b"]
    assert bench.dropped == 1


def test_a_dead_letter_is_sent_whatever_is_decided() -> None:
    for config, fails in (({**CONTINUE, **DEAD_LETTERS}, False), (DEAD_LETTERS, True)):
        bench = chain(config)
        try:
            bench.feed(message("in", 7, "bad", 5, headers=[("h", b"x")]))
        except ProcessingError:
            assert fails
        (letter,) = bench.sent()
        assert (letter.topic, letter.partition, letter.key, letter.value, letter.timestamp) == (
            "dlq",
            None,
            b"k",
            b"bad",
            5,
        )
        assert letter.headers[0] == ("h", b"x")
        assert dict(letter.headers)["__streams.errors.offset"] == b"7"


def letter_after_a_sink(
    *between: Node, into: tuple[str, ...] = ("SINK", "NODE"), config: dict[str, Any] | None = None, **options: Any
) -> ProducedRecord:
    """The dead letter of a record that fails at NODE, after it was offered to what leads to a sink."""
    bench = TaskBench(
        source("SOURCE", "in", children=into),
        *between,
        sink("SINK", "out", **options),
        node("NODE", each(boom)),
        config={**CONTINUE, **DEAD_LETTERS, **(config or {})},
    )
    bench.feed(message("in", 7, "bad", 5))
    return bench.sent()[-1]


def test_a_dead_letter_has_no_key_and_value_any_more_once_a_sink_has_sent_the_record() -> None:
    letter = letter_after_a_sink()

    assert (letter.topic, letter.key, letter.value) == ("dlq", None, None)
    assert dict(letter.headers)["__streams.errors.offset"] == b"7"


@pytest.mark.parametrize("chosen", [[], {2}])
def test_a_sink_that_sends_to_no_partition_has_not_sent(chosen: Collection[int]) -> None:
    letter = letter_after_a_sink(partitioner=lambda topic, key, value, partitions: chosen)

    assert letter.value == (None if chosen else b"bad")


def test_what_is_sent_below_a_node_counts_above_it_where_the_node_forwards_the_very_record() -> None:
    def always(key: str, value: str) -> bool:
        return True

    for operator, value in (
        (PassThrough(), None),
        (Branch((always,), ("SINK",)), None),
        (Filter(always), b"bad"),
        (FilterNothing(), b"bad"),
        (Peek(lambda key, value: None), b"bad"),
        (MapValues(str.upper), b"bad"),
    ):
        letter = letter_after_a_sink(node("FIRST", operator, "SINK"), into=("FIRST", "NODE"))

        assert letter.value == value


def test_what_is_sent_above_a_node_counts_below_it() -> None:
    letter = letter_after_a_sink(node("FIRST", MapValues(str.lower), "NODE"), into=("SINK", "FIRST"))

    assert letter.value is None


def test_a_record_that_cannot_be_read_stops_the_task_and_says_where_and_what() -> None:
    bench = longs()

    with pytest.raises(StreamsError) as found:
        bench.feed(message("in", 7, "bad", 5))

    text = str(found.value)
    assert text == (
        "SOURCE (task 0_0) cannot read the value of a record: LongSerde() cannot read 3 bytes (hex 626164) of topic "
        "'in': expected 8 bytes (record in-0 at offset 7); give the source the right value_serde, or set "
        "deserialization.exception.handler to skip such records"
    )
    cause = found.value.__cause__
    assert isinstance(cause, SerdeError)
    assert (cause.topic, cause.partition, cause.offset) == ("in", 0, 7)


def test_a_record_that_cannot_be_read_may_be_skipped_and_its_offset_is_committed() -> None:
    bench = longs({**CONTINUE, **DEAD_LETTERS})

    bench.feed(message("in", 7, "bad", 5))

    (letter,) = bench.sent()
    assert (letter.topic, letter.key, letter.value) == ("dlq", b"k", b"bad")
    assert bench.dropped == 1
    ((offset, _),) = bench.task.prepare_commit().values()
    assert offset == 8


def test_a_deserialization_handler_gets_the_raw_record() -> None:
    asked = []

    def handler(context: ErrorHandlerContext, record: Any, exception: Exception) -> ErrorHandlerResponse:
        asked.append((context, record))
        return ErrorHandlerResponse.resume([ProducerRecord("elsewhere", record.key, record.value)])

    bench = longs({"deserialization.exception.handler": handler})

    bench.feed(message("in", 7, "bad", 5, headers=[("h", b"x")]))

    ((context, record),) = asked
    assert record == ("in", 0, 7, 5, b"k", b"bad", [("h", b"x")])
    assert (context.processor_node_id, context.task_id, context.source_raw_value) == ("SOURCE", TaskId(0, 0), b"bad")
    assert [found.topic for found in bench.sent()] == ["elsewhere"]


@pytest.mark.parametrize("answer", [None, KeyError("oops")])
def test_a_handler_that_fails_itself_is_an_error_that_tells_both(answer: Exception | None) -> None:
    def handler(context: ErrorHandlerContext, record: Any, exception: Exception) -> None:
        if answer is not None:
            raise answer

    bench = chain({"processing.exception.handler": handler})

    with pytest.raises(
        ProcessingError,
        match=r"processing exception handler itself failed with .*(KeyError|TypeError).*NODE had raised ValueError",
    ):
        bench.feed(message("in", 7, "bad", 5))


def punctuated(config: dict[str, Any] | None = None) -> TaskBench:
    def build(context: OperatorContext) -> Forward:
        def tick(now: int) -> None:
            raise ValueError("tick")

        def init() -> None:
            context.processing.schedule(10, PunctuationType.STREAM_TIME, tick)

        context.on_init(init)
        return context.forward

    return TaskBench(source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build)), config=config)


def test_a_punctuator_that_raises_stops_the_task_and_names_its_node() -> None:
    bench = punctuated()

    with pytest.raises(
        ProcessingError, match=r"raised ValueError\('tick'\); NODE failed at no input record .*punctuator at 5"
    ):
        bench.feed(message("in", 0, "v", 5))


def test_a_punctuator_that_raises_may_be_passed_over_and_fires_again() -> None:
    asked = []

    def handler(context: ErrorHandlerContext, record: Any, exception: Exception) -> ErrorHandlerResponse:
        asked.append((context.topic, context.offset, record, context.timestamp))
        return ErrorHandlerResponse.resume()

    bench = punctuated({"processing.exception.handler": handler})

    bench.feed(message("in", 0, "v", 5), message("in", 1, "v", 15))

    assert asked == [(None, -1, None, 5), (None, -1, None, 15)]
    assert bench.dropped == 2


@pytest.mark.parametrize(
    ("broken", "where"),
    [
        *((StoreEngineError("store 'counts' cannot be read"), where) for where in ("process", "punctuate", "init")),
        *((ClusterUnavailableError("the queue is full"), where) for where in ("process", "punctuate")),
    ],
)
def test_no_handler_is_asked_about_what_is_no_records_fault(broken: StreamsError, where: str) -> None:
    """With "continue" the records that need the store, or the brokers, would be lost."""

    def fails(*_: object) -> None:
        raise broken

    def build(context: OperatorContext) -> Forward:
        def schedule() -> None:
            context.processing.schedule(5, PunctuationType.STREAM_TIME, fails)

        if where == "init":
            context.on_init(fails)
        if where == "punctuate":
            context.on_init(schedule)
        return context.forward

    def run() -> None:
        user = each(lambda key, value: fails() if where == "process" else value)
        bench = TaskBench(
            source("SOURCE", "in", children=("USER",)),
            node("USER", user, "NODE"),
            node("NODE", Operator(build)),
            config=CONTINUE,
        )
        bench.feed(message("in", 0, "v", 5))

    with pytest.raises(type(broken)) as raised:
        run()
    assert raised.value is broken


def test_an_exception_that_no_node_has_reported_still_says_which_record_it_was() -> None:
    def build(context: OperatorContext) -> Forward:
        def run(key: object, value: object, timestamp: int, headers: Headers) -> None:
            raise RuntimeError("from nowhere")

        return run

    bench = TaskBench(source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build)))

    with pytest.raises(
        ProcessingError, match=r"raised RuntimeError\('from nowhere'\); record in-0 offset 3 failed in task 0_0"
    ):
        bench.feed(message("in", 3, "v", 5))


def test_dropped_records_are_counted_and_warned_of_without_flooding(caplog: pytest.LogCaptureFixture) -> None:
    def build(context: OperatorContext) -> Forward:
        return lambda key, value, timestamp, headers: context.drop("its key is null")

    bench = TaskBench(source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build)))

    with caplog.at_level(logging.WARNING):
        bench.feed(*(message("in", i, "v", 5) for i in range(5)))
        bench.clock.advance(10_000)
        bench.feed(message("in", 5, "v", 5))

    assert bench.dropped == 6
    assert [record.getMessage() for record in caplog.records] == [
        "NODE dropped a record: its key is null; task 0_0, in-0@0",
        "NODE dropped a record: its key is null; task 0_0, in-0@5 (and 4 more since the last warning)",
    ]
