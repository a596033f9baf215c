"""When a table may send the bytes of its store straight into a topic: no code of a user lies between."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import Serdes
from pykstreams.core.errors import ProcessingError
from pykstreams.core.processor import OperatorContext
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Forward, Headers
from pykstreams.core.windows import Window, Windowed
from pykstreams.processors.tables.table import TableToStream
from pykstreams.serdes.windowed import TimeWindowedSerializer
from pykstreams.topology.placement.answer_partitioner import AnswerPartitioner
from pykstreams.topology.placement.windowed_partitioner import WindowedPartitioner
from tests.unit.runtime.tasks.fakes import Operator, TaskBench, each, node, sink, source


class Seen:
    """The operator of a table, as far as its context matters here."""

    def __init__(self) -> None:
        self.sink: SerializedSink | None = None
        self.gets_what_was_read = False

    @property
    def operator(self) -> Operator:
        def build(context: OperatorContext) -> Forward:
            self.sink, self.gets_what_was_read = context.serialized_sink, context.gets_what_was_read

            def ignore(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
                """Nothing comes."""

            return ignore

        return Operator(build)


def bench_of(*below: Any, children: tuple[str, ...], **options: Any) -> tuple[SerializedSink | None, TaskBench]:
    table = Seen()
    above = source("source", "in", children=["table"]), node("table", table.operator, *children)
    bench = TaskBench(*above, *below, **options)
    return table.sink, bench


def test_records_go_straight_into_the_only_topic_below() -> None:
    found, bench = bench_of(
        node("to-stream", TableToStream(), "sink"),
        sink("sink", "out", key_serializer=Serdes.string(), value_serializer=Serdes.long()),
        children=("to-stream",),
    )

    assert found is not None
    assert (found.key_serializer, found.value_serializer) == (Serdes.string(), Serdes.long())
    found.send([(b"k", b"v", 7, (("h", b"1"),)), (b"l", b"w", 8, ())])
    sent = [(record.topic, record.key, record.value, record.timestamp, record.headers) for record in bench.sent()]
    assert sent == [("out", b"k", b"v", 7, (("h", b"1"),)), ("out", b"l", b"w", 8, ())]


def test_windowed_keys_lie_where_their_keys_alone_do() -> None:
    serializer = TimeWindowedSerializer(Serdes.string().serializer)
    found, bench = bench_of(
        sink("sink", "out", key_serializer=serializer, partitioner=WindowedPartitioner(serializer)),
        children=("sink",),
        partition_count=16,
    )

    assert found is not None
    keys = [serializer.serialize("out", Windowed("k", Window(time, time + 10))) for time in (0, 10, 20)]
    found.send([(key, b"v", 5, ()) for key in keys if key is not None])
    assert len({record.partition for record in bench.sent()}) == 1


@pytest.mark.parametrize(
    ("below", "children"),
    [
        ([sink("sink", "out"), sink("other", "more")], ("sink", "other")),
        ([node("peek", each(lambda key, value: value), "sink"), sink("sink", "out")], ("peek",)),
        ([sink("sink", lambda key, value, context: "out")], ("sink",)),
        ([sink("sink", "out", partitioner=lambda topic, key, value, count: 0)], ("sink",)),
        ([], ()),
    ],
    ids=["two topics", "another operator", "a topic for each record", "a user's partitioner", "nothing"],
)
def test_records_do_not_go_straight_where_more_lies_between(below: list[Any], children: tuple[str, ...]) -> None:
    found, _ = bench_of(*below, children=children)

    assert found is None


def test_records_do_not_go_straight_where_a_handler_goes_on_after_errors() -> None:
    found, _ = bench_of(
        sink("sink", "out"), children=("sink",), config={"errors.dead.letter.queue.topic.name": "letters"}
    )

    assert found is None


def test_answers_go_to_the_partition_that_is_told_or_else_to_that_of_their_key() -> None:
    found, bench = bench_of(sink("sink", "out", partitioner=AnswerPartitioner()), children=("sink",))

    assert found is not None
    found.send_one(b"k", b"v", 7, (("h", b"1"),), 3)
    found.send_one(b"l", b"w", 8, ())
    sent = [(record.partition, record.key, record.value, record.timestamp, record.headers) for record in bench.sent()]
    assert sent == [(3, b"k", b"v", 7, (("h", b"1"),)), (None, b"l", b"w", 8, ())]


def test_a_partition_that_the_topic_does_not_have_is_an_error_of_the_sink() -> None:
    found, bench = bench_of(sink("sink", "out", partitioner=AnswerPartitioner()), children=("sink",))

    assert found is not None
    with pytest.raises(ProcessingError, match="chose partition 4 of topic 'out'; expected a number from 0 to 3"):
        found.send_one(b"k", b"v", 7, (), 4)
    assert bench.sent() == []


@pytest.mark.parametrize(
    ("above", "config", "expected"),
    [
        ([source("source", "in", children=["table"])], {}, True),
        ([source("source", "in", children=["peek"]), node("peek", each(lambda k, v: v), "table")], {}, False),
        (
            [source("source", "in", children=["peek", "table"]), node("peek", each(lambda k, v: v), "table")],
            {},
            False,
        ),
        ([source("source", "in", children=["table"])], {"errors.dead.letter.queue.topic.name": "letters"}, False),
    ],
    ids=["source", "operator", "both", "a handler that goes on"],
)
def test_who_gets_what_was_read(above: list[Any], config: dict[str, Any], expected: bool) -> None:
    table = Seen()
    TaskBench(*above, node("table", table.operator), config=config)

    assert table.gets_what_was_read is expected
