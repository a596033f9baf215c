"""Sinks: partitioners, topics chosen per record, records that cannot be serialized."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pykstreams.core.errors import DeliveryError, ProcessingError, SerdeError, StreamsError, WrongTypeError
from pykstreams.core.handlers import (
    ErrorHandlerContext,
    ErrorHandlerResponse,
    ProductionExceptionHandler,
    SerializationExceptionOrigin,
)
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.record import ProducerRecord, RecordContext
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes import JsonSerde, Serde, Serdes, Serializer, SessionWindowedSerde, TimeWindowedSerde
from pykstreams.topology.placement.windowed_partitioner import windowed_partitioner
from tests.unit.runtime.tasks.fakes import FakeKafkaError, TaskBench, each, message, node, sink, source

CONTINUE = {"processing.exception.handler": "pykstreams.core.handlers:LogAndContinueProcessingExceptionHandler"}


def to(topic: str | Callable[[str, str, RecordContext], object] = "out", **options: Any) -> TaskBench:
    config = options.pop("config", None)
    return TaskBench(source("SOURCE", "in", children=("SINK",)), sink("SINK", topic, **options), config=config)


def partitions(bench: TaskBench) -> list[int | None]:
    return [record.partition for record in bench.sent()]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [(None, [None]), (2, [2]), (0, [0]), ([3, 1], [3, 1]), ({3, 1}, [1, 3]), ([1, 1], [1]), ([], []), (set(), [])],
)
def test_a_partitioner_chooses_one_partition_or_several_or_none_or_leaves_it_open(
    chosen: object, expected: list[int | None]
) -> None:
    bench = to(partitioner=lambda topic, key, value, count: chosen)

    bench.feed(message("in", 0, "v", 5))

    assert partitions(bench) == expected
    assert bench.dropped == (not expected)


def test_a_partitioner_gets_topic_key_value_and_number_of_partitions() -> None:
    asked = []
    bench = to(partitioner=lambda *args: asked.append(args))

    bench.feed(message("in", 0, "v", 5))

    assert asked == [("out", "k", "v", 4)]


@pytest.mark.parametrize("chosen", [-1, [-1], ["x"]])
def test_a_partitioner_that_chooses_nonsense_is_an_error_of_the_sink(chosen: object) -> None:
    bench = to(partitioner=lambda *args: chosen)

    with pytest.raises(ProcessingError, match=r"SINK failed at record in-0 offset 0 .* chose partition"):
        bench.feed(message("in", 0, "v", 5))


def beyond(topic: str, key: object, value: object, partitions: int) -> int:
    return partitions


def any_number(topic: str, key: object, value: object, partitions: int) -> Any:
    return 0.5


def no_topic(key: object, value: object, context: object) -> Any:
    return 3


@pytest.mark.parametrize(
    ("sink_of", "said"),
    [
        (lambda: to(partitioner=beyond), "partitioner .*test_sinks.beyond (line "),
        (lambda: to(partitioner=any_number), "partitioner .*test_sinks.any_number (line "),
        (lambda: to(topic=no_topic), "topic extractor .*test_sinks.no_topic (line "),
    ],
)
def test_function_of_a_sink_is_named_with_its_line(sink_of: Callable[[], Any], said: str) -> None:
    with pytest.raises(ProcessingError, match=said.replace("(", r"\(")):
        sink_of().feed(message("in", 0, "v", 5))


@pytest.mark.parametrize("chosen", [2.0, 0.0, object, [[1]], {2.5, "x"}])
def test_a_partitioner_that_chooses_no_partitions_at_all_is_told_what_to_choose(chosen: object) -> None:
    bench = to(partitioner=lambda *args: chosen)

    said = f"chose {chosen!r} for topic 'out'; expected a number from 0 to 3, several of them, or None"
    with pytest.raises(ProcessingError, match=re.escape(said)):
        bench.feed(message("in", 0, "v", 5))


def test_the_topic_may_be_chosen_per_record_from_the_context() -> None:
    seen = []

    def choose(key: str, value: str, context: RecordContext) -> str:
        seen.append(context)
        return f"to-{value}"

    bench = to(choose)

    bench.feed(message("in", 4, "a", 5, headers=[("h", b"x")]), message("in", 5, "b", 6), message("in", 6, "a", 7))

    assert [record.topic for record in bench.sent()] == ["to-a", "to-b", "to-a"]
    assert seen[0] == ("in", 0, 4, 5, [("h", b"x")], None, None)


@pytest.mark.parametrize("chosen", [5, None, ["a"]])
def test_a_topic_that_is_no_text_is_an_error_of_the_sink(chosen: object) -> None:
    bench = to(lambda key, value, context: chosen)

    said = rf"SINK failed at .* gave {re.escape(repr(chosen))}; expected a topic name"
    with pytest.raises(ProcessingError, match=said):
        bench.feed(message("in", 0, "v", 5))


def test_what_cannot_be_serialized_stops_the_task_and_says_where_and_what() -> None:
    bench = to(value_serializer=Serdes.long().serializer)

    with pytest.raises(
        StreamsError, match=r"SINK cannot write the value of a record to topic 'out': .*'v' of type str"
    ):
        bench.feed(message("in", 0, "v", 5))


def test_what_a_sink_cannot_write_is_told_once_also_by_the_node_above_it() -> None:
    bench = TaskBench(
        source("SOURCE", "in", children=("NODE",)),
        node("NODE", each(lambda key, value: value), "SINK"),
        sink("SINK", "out", value_serializer=Serdes.long().serializer),
    )

    with pytest.raises(ProcessingError) as found:
        bench.feed(message("in", 0, "v", 5))

    assert str(found.value) == (
        "SINK cannot write the value of a record to topic 'out': LongSerde() cannot write 'v' of type str for topic "
        "'out': expected an int from -2**63 to 2**63 - 1; give the sink the right serde, or correct "
        "the type that stands for one: in the annotation of the function that made it, or where the topic is read "
        "(record in-0 offset 0, task 0_0)"
    )
    assert found.value.__cause__ is not None
    refused = found.value.__cause__.__cause__
    assert isinstance(refused, SerdeError)
    assert refused.__cause__ is not None
    assert refused.__cause__.__context__ is None


PARTITIONERS = pytest.mark.parametrize("partitioner", [None, lambda *_: 2], ids=["default", "of the user"])


@PARTITIONERS
@pytest.mark.parametrize("origin", list(SerializationExceptionOrigin))
def test_the_production_handler_may_drop_what_cannot_be_serialized(
    origin: SerializationExceptionOrigin, partitioner: Callable[..., int] | None
) -> None:
    asked = []

    class Handler(ProductionExceptionHandler):
        def handle_error(
            self, context: ErrorHandlerContext, record: ProducerRecord, exception: Exception
        ) -> ErrorHandlerResponse:
            raise AssertionError("not asked for")

        def handle_serialization_error(
            self,
            context: ErrorHandlerContext,
            record: ProducerRecord,
            exception: Exception,
            origin: SerializationExceptionOrigin,
        ) -> ErrorHandlerResponse:
            asked.append((context, record, origin))
            return ErrorHandlerResponse.resume()

    def refuse(data: object) -> None:
        raise ValueError(f"{data!r} is refused")

    bench = to(
        "out",
        config={"production.exception.handler": Handler()},
        partitioner=partitioner,
        **{f"{origin.value}_serializer": refuse},
    )

    bench.feed(message("in", 3, "v", 5))

    ((context, record, asked_origin),) = asked
    assert asked_origin is origin
    assert (context.topic, context.offset, context.source_raw_value) == ("in", 3, b"v")
    assert record == ("out", "k", "v", partitioner and 2, 5, ())
    assert bench.sent() == []
    assert bench.dropped == 1


@pytest.mark.parametrize(
    "serializer",
    [
        Serdes.long().serializer,
        Serdes.double().serializer,
        Serdes.boolean().serializer,
        Serdes.bytes().serializer,
        Serdes.uuid().serializer,
        Serdes.list(Serdes.string()).serializer,
        JsonSerde(Window).serializer,
        TimeWindowedSerde(Serdes.string(), 10).serializer,
        SessionWindowedSerde(Serdes.string()).serializer,
    ],
    ids=repr,
)
def test_the_production_handler_is_not_asked_about_a_value_of_the_wrong_type(serializer: Serializer[Any]) -> None:
    class Handler(ProductionExceptionHandler):
        def handle_error(
            self, context: ErrorHandlerContext, record: ProducerRecord, exception: Exception
        ) -> ErrorHandlerResponse:
            raise AssertionError("not asked for")

        def handle_serialization_error(
            self,
            context: ErrorHandlerContext,
            record: ProducerRecord,
            exception: Exception,
            origin: SerializationExceptionOrigin,
        ) -> ErrorHandlerResponse:
            raise AssertionError("asked")

    bench = to(config={"production.exception.handler": Handler()}, value_serializer=serializer)

    with pytest.raises(StreamsError, match="SINK cannot write the value of a record to topic 'out'") as found:
        bench.feed(message("in", 3, "v", 5))

    assert found.value.__cause__ is not None
    assert isinstance(found.value.__cause__.__cause__, WrongTypeError)


def test_with_a_handler_that_goes_on_a_failing_sink_costs_its_parent_the_record() -> None:
    """Kafka Streams' sinks have no handling of their own: later siblings do not get the record either."""
    bench = TaskBench(
        source("SOURCE", "in", children=("NODE",)),
        node("NODE", each(lambda key, value: value.upper()), "GOOD", "BAD", "NEVER"),
        sink("GOOD", "good"),
        sink("BAD", "bad", value_serializer=Serdes.long().serializer),
        sink("NEVER", "never"),
        config=CONTINUE,
    )

    assert bench.feed(message("in", 0, "v", 5)) == 1

    assert [record.topic for record in bench.sent()] == ["good"]
    assert bench.dropped == 1


def test_a_failing_sink_right_below_a_source_stops_the_task_whatever_the_handler_says() -> None:
    bench = to(value_serializer=Serdes.long().serializer, config=CONTINUE)

    with pytest.raises(StreamsError, match="SINK cannot write the value"):
        bench.feed(message("in", 0, "v", 5))


@PARTITIONERS
def test_a_full_queue_is_waited_for(partitioner: Callable[..., int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = to(partitioner=partitioner)
    produce, left = bench.producer.produce, [2]

    def full(*args: Any, **options: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise BufferError
        produce(*args, **options)

    monkeypatch.setattr(bench.producer, "produce", full)
    bench.collector.produce = full
    bench = rewired(bench)

    bench.feed(message("in", 0, "v", 5))

    assert [(partitioner and 2, b"v")] == [(record.partition, record.value) for record in bench.sent()]


@PARTITIONERS
def test_a_record_that_the_client_refuses_at_once_is_raised_at_the_next_commit(
    partitioner: Callable[..., int] | None,
) -> None:
    bench = to(partitioner=partitioner)

    def refuse(*args: object, **options: object) -> None:
        raise RuntimeError(FakeKafkaError("MSG_SIZE_TOO_LARGE"))

    bench.collector.produce = refuse
    bench = rewired(bench)

    bench.feed(message("in", 0, "v", 5))

    with pytest.raises(DeliveryError, match="MSG_SIZE_TOO_LARGE"):
        bench.collector.check()


def rewired(bench: TaskBench) -> TaskBench:
    """Compiles the task once more, over a producer that was changed since."""
    bench.task.start({})
    return bench


def to_windowed(
    key_serde: Serde[Windowed[str]], topic: str | Callable[[str, str, RecordContext], object] = "out"
) -> TaskBench:
    """A sink for windowed keys; the source's keys are windowed, too."""
    nodes = (
        source("SOURCE", "in", children=("SINK",), key_deserializer=key_serde.deserializer),
        sink(
            "SINK", topic, key_serializer=key_serde.serializer, partitioner=windowed_partitioner(key_serde.serializer)
        ),
    )
    return TaskBench(*nodes)


WINDOWED = pytest.mark.parametrize(
    "serde", [TimeWindowedSerde(Serdes.string(), 10), SessionWindowedSerde(Serdes.string())], ids=["time", "session"]
)


@WINDOWED
@pytest.mark.parametrize("topic", ["out", lambda key, value, context: "out"], ids=["fixed", "chosen"])
def test_windowed_keys_are_sent_to_the_partition_of_the_key_alone(
    serde: Serde[Windowed[str]], topic: str | Callable[[str, str, RecordContext], object]
) -> None:
    bench = to_windowed(serde, topic)
    for start in (0, 10, 20):
        raw = serde.serializer.serialize("in", Windowed("customer-3", Window(start, start + 10)))
        bench.feed(message("in", 0, "v", 5, key=raw))

    assert {partition_for_key(b"customer-3", 4)} == set(partitions(bench))


def test_a_value_that_cannot_be_written_beside_a_windowed_key_says_where_and_what() -> None:
    serde = TimeWindowedSerde(Serdes.string(), 10)
    bench = TaskBench(
        source("SOURCE", "in", children=("SINK",), key_deserializer=serde.deserializer),
        sink(
            "SINK",
            "out",
            key_serializer=serde.serializer,
            value_serializer=Serdes.long().serializer,
            partitioner=windowed_partitioner(serde.serializer),
        ),
    )
    raw = serde.serializer.serialize("in", Windowed("a", Window(0, 10)))

    with pytest.raises(StreamsError, match="value"):
        bench.feed(message("in", 0, "v", 5, key=raw))


def test_a_null_key_where_windowed_ones_are_written_is_an_error_of_the_sink() -> None:
    bench = to_windowed(TimeWindowedSerde(Serdes.string(), 10))

    with pytest.raises(ProcessingError, match="SINK failed"):
        bench.feed(message("in", 0, "v", 5, key=None))


def test_a_full_queue_is_waited_for_with_windowed_keys_too(monkeypatch: pytest.MonkeyPatch) -> None:
    serde = TimeWindowedSerde(Serdes.string(), 10)
    bench = to_windowed(serde)
    produce, left = bench.producer.produce, [2]

    def full(*args: Any, **options: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise BufferError
        produce(*args, **options)

    monkeypatch.setattr(bench.producer, "produce", full)
    bench.collector.produce = full
    bench = rewired(bench)

    bench.feed(message("in", 0, "v", 5, key=serde.serializer.serialize("in", Windowed("a", Window(0, 10)))))

    assert [partition_for_key(b"a", 4)] == partitions(bench)
