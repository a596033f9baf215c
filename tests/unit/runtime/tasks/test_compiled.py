"""A plan becomes callables: each node once, with its children bound, its serdes found and its errors answered for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import DeliveryError, ProcessingError, StreamsError
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.processor import CurrentRecord, OperatorContext
from pykstreams.core.types import Forward, Headers
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.compiled import compile_plan, fan_out, source_decoders, source_of
from pykstreams.runtime.tasks.context import TaskState, describe_record
from pykstreams.runtime.tasks.dropped import DroppedRecords
from pykstreams.runtime.tasks.failures import Failures
from pykstreams.runtime.tasks.in_flight import InFlight
from pykstreams.runtime.tasks.input_watch import InputWatch
from pykstreams.runtime.tasks.punctuation import PunctuationQueue
from pykstreams.serdes import Serdes
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner
from pykstreams.topology.plan import Node
from tests.unit.runtime import plans
from tests.unit.runtime.tasks.fakes import FakeKafkaError, Operator, each, message, node, sink, source
from tests.unit.user_processors import Forward as ForwardRecord

TASK = TaskId(0, 0)
HEADERS: Headers = (("trace", b"1"),)
CONTINUE = {"processing.exception.handler": "pykstreams.core.handlers:LogAndContinueProcessingExceptionHandler"}

RAW = message("in", 3, "a", 5)

Seen = list[tuple[Any, ...]]


class CompiledPlan:
    """A plan that was compiled for a task of which there is nothing but its state."""

    def __init__(self, *nodes: Node, settings: Mapping[str, object] | None = None) -> None:
        config = StreamsConfig(
            {
                "application.id": "shop",
                "default.key.serde": Serdes.string(),
                "default.value.serde": Serdes.string(),
                **(settings or {}),
            }
        )
        self.producer = CapturingProducer()
        metrics, clock = StreamsMetrics(), MockClock(0)
        collector = RecordCollector(self.producer, config=config, partition_count=lambda topic: 4)
        current = CurrentRecord(describe_record)
        self.dropped = metrics.counter("dropped-records-total", "stream-task-metrics", task_id=str(TASK))
        dropped = DroppedRecords(TASK, self.dropped, clock, lambda: current.context)
        self.state = TaskState(
            TASK,
            config,
            clock,
            collector,
            metrics,
            Path("unused"),
            current,
            dropped,
            Failures(TASK, config, collector, current, dropped),
            PunctuationQueue(lambda *_: None),
            PunctuationQueue(lambda *_: None),
            InFlight(lambda: None),
            InputWatch(clock, lambda: False),
        )
        self.sources = compile_plan(plans.part(0, *nodes), self.state)

    def feed(self, value: Any, *, key: Any = "k", source: str = "SOURCE") -> None:
        self.sources[source](key, value, 5, HEADERS)

    def sent(self) -> list[tuple[str, bytes | None]]:
        return [(record.topic, record.value) for record in self.producer.take()]


def into(seen: Seen, name: str = "") -> Operator:
    """An operator without children that keeps what it gets."""

    def build(context: OperatorContext) -> Forward:
        def keep(*record: Any) -> None:
            seen.append((name, *record) if name else record)

        return keep

    return Operator(build)


# --- nodes and their children ---


def test_source_with_one_child_is_that_child_itself() -> None:
    built: list[Forward] = []

    def build(context: OperatorContext) -> Forward:
        built.append(context.forward)
        return print

    compiled = CompiledPlan(source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build)))

    assert compiled.sources == {"SOURCE": print}


def test_record_passes_every_node_as_it_is_with_time_and_headers() -> None:
    seen: Seen = []
    compiled = CompiledPlan(
        source("SOURCE", "in", children=("UPPER",)),
        node("UPPER", each(lambda key, value: value.upper()), "END"),
        node("END", into(seen)),
    )

    compiled.feed("a")

    assert seen == [("k", "A", 5, HEADERS)]


def test_node_below_two_parents_is_built_once() -> None:
    built: list[str] = []
    seen: Seen = []

    def build(context: OperatorContext) -> Forward:
        built.append(context.node)
        return lambda *record: seen.append(record)

    compiled = CompiledPlan(
        source("SOURCE", "in", children=("LEFT", "RIGHT")),
        node("LEFT", each(lambda key, value: f"left {value}"), "END"),
        node("RIGHT", each(lambda key, value: f"right {value}"), "END"),
        node("END", Operator(build)),
    )
    compiled.feed("a")

    assert built == ["END"]
    assert [value for _, value, *_ in seen] == ["left a", "right a"]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_children_get_a_record_in_the_order_of_the_plan(count: int) -> None:
    seen: Seen = []
    names = [f"CHILD-{9 - number}" for number in range(count)]
    compiled = CompiledPlan(source("SOURCE", "in", children=names), *(node(name, into(seen, name)) for name in names))

    compiled.feed("a")

    assert seen == [(name, "k", "a", 5, HEADERS) for name in names]


def test_child_that_names_its_parent_twice_gets_each_record_twice() -> None:
    seen: Seen = []
    compiled = CompiledPlan(source("SOURCE", "in", children=("END", "END")), node("END", into(seen)))

    compiled.feed("a")

    assert [value for _, value, *_ in seen] == ["a", "a"]


def test_operator_knows_its_children_by_name() -> None:
    seen: Seen = []

    def build(context: OperatorContext) -> Forward:
        return context.children["RIGHT"]

    compiled = CompiledPlan(
        source("SOURCE", "in", children=("NODE",)),
        node("NODE", Operator(build), "LEFT", "RIGHT"),
        node("LEFT", into(seen, "left")),
        node("RIGHT", into(seen, "right")),
    )
    compiled.feed("a")

    assert [name for name, *_ in seen] == ["right"]


def test_record_ends_at_a_node_without_children() -> None:
    compiled = CompiledPlan(
        source("SOURCE", "in", children=("NODE",)), node("NODE", each(lambda key, value: value)), source("LONELY", "x")
    )

    compiled.feed("a")
    compiled.feed("a", source="LONELY")

    assert compiled.sent() == []


def test_each_source_has_its_own_callable() -> None:
    seen: Seen = []
    compiled = CompiledPlan(
        source("A", "a", children=("END-A",)),
        source("B", "b", children=("END-B",)),
        node("END-A", into(seen, "a")),
        node("END-B", into(seen, "b")),
    )
    compiled.feed("x", source="B")

    assert set(compiled.sources) == {"A", "B"}
    assert [name for name, *_ in seen] == ["b"]


def test_processor_of_a_user_is_run_like_an_operator() -> None:
    compiled = CompiledPlan(
        source("SOURCE", "in", children=("NODE",)), node("NODE", ForwardRecord, "SINK"), sink("SINK", "out")
    )
    ((_, (init,)),) = compiled.state.callbacks.at_init(["NODE"])
    init()

    compiled.feed("a")

    assert compiled.sent() == [("out", b"a")]


def test_node_has_no_access_to_stores_that_it_is_not_connected_to() -> None:
    contexts: list[OperatorContext] = []

    def build(context: OperatorContext) -> Forward:
        contexts.append(context)
        return context.forward

    CompiledPlan(source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build), stores=("counts",)))
    (context,) = contexts

    with pytest.raises(StreamsError, match="NODE has no access to store 'others'; connected to it: 'counts'"):
        context.processing.get_state_store("others")


@pytest.mark.parametrize("count", range(5))
def test_one_callable_for_all_children(count: int) -> None:
    seen: Seen = []
    children: list[Forward] = [lambda *record, n=n: seen.append((n, *record)) for n in range(count)]

    fan_out(children)("k", "v", 5, HEADERS)

    assert seen == [(number, "k", "v", 5, HEADERS) for number in range(count)]


# --- errors ---


def boom(key: Any, value: Any) -> Any:
    raise ValueError("boom")


def unserializable(*, settings: Mapping[str, object] | None = None) -> tuple[CompiledPlan, Seen]:
    """A node above a sink that cannot write what comes, and above another child."""
    seen: Seen = []
    compiled = CompiledPlan(
        source("SOURCE", "in", children=("NODE",)),
        node("NODE", ForwardsAll(), "SINK", "LATER"),
        sink("SINK", "out", value_serializer=Serdes.long().serializer, partitioner=boom_in_partitioner),
        node("LATER", into(seen)),
        settings=settings,
    )
    return compiled, seen


@dataclass
class ForwardsAll:
    """An operator that forwards each record to all children, as the very record that came or not."""

    forwards_input: bool = False

    def build(self, context: OperatorContext) -> Forward:
        return context.forward


def boom_in_partitioner(*arguments: object) -> int:
    raise ValueError("boom")


def test_error_of_a_sink_is_one_of_the_sink_where_errors_end_the_task() -> None:
    compiled, seen = unserializable()

    with pytest.raises(ProcessingError) as raised:
        compiled.feed(7)

    assert raised.value.node == "SINK"
    assert seen == []


def test_error_of_a_sink_costs_the_node_above_it_the_record_for_later_children_where_work_goes_on() -> None:
    compiled, seen = unserializable(settings=CONTINUE)

    compiled.feed(7)

    assert compiled.dropped.total == 1
    assert seen == []


def test_error_of_an_operator_is_its_own_and_other_children_get_the_record_where_work_goes_on() -> None:
    seen: Seen = []
    compiled = CompiledPlan(
        source("SOURCE", "in", children=("BAD", "GOOD")),
        node("BAD", each(boom)),
        node("GOOD", into(seen)),
        settings=CONTINUE,
    )

    compiled.feed("a")

    assert compiled.dropped.total == 1
    assert seen == [("k", "a", 5, HEADERS)]


@pytest.mark.parametrize(("forwards_input", "left"), [(False, True), (True, False)])
def test_raw_record_is_kept_for_children_beside_a_sink_that_has_sent_unless_it_is_the_very_record(
    forwards_input: bool, left: bool
) -> None:
    """What a sink has sent is gone for the rest of the record that it was part of, and for no other one."""
    there: list[bool] = []

    def look(context: OperatorContext) -> Forward:
        def run(*record: Any) -> None:
            raw = context.current.raw
            there.append(raw is not None and raw[0].key() is not None)

        return run

    compiled = CompiledPlan(
        source("SOURCE", "in", children=("TOP",)),
        node("TOP", ForwardsAll(), "NODE", "LOOK"),
        node("NODE", ForwardsAll(forwards_input), "SINK"),
        sink("SINK", "out"),
        node("LOOK", Operator(look)),
        settings=CONTINUE,
    )
    compiled.state.current.raw = (RAW, 5, HEADERS)
    compiled.feed("a")

    assert there == [left]


# --- serdes, sinks and sources ---


def test_source_reads_with_its_own_deserializers_and_else_with_the_defaults() -> None:
    compiled = CompiledPlan()
    given = source("SOURCE", "in", value_deserializer=Serdes.long().deserializer)

    key, value = source_decoders(given, "in", compiled.state)

    assert key(b"a", ()) == "a"
    assert value((7).to_bytes(8, "big"), ()) == 7


@pytest.mark.parametrize("part", ["key", "value"])
def test_source_without_a_serde_is_named_with_its_topic(part: str) -> None:
    compiled = CompiledPlan(settings={f"default.{part}.serde": None})

    with pytest.raises(StreamsError, match=rf"^SOURCE \(topic 'in'\): a step needs a {part} serde") as raised:
        source_decoders(source("SOURCE", "in"), "in", compiled.state)

    assert raised.value.task_id == TASK


@pytest.mark.parametrize("part", ["key", "value"])
def test_sink_without_a_serde_is_named_with_its_topic(part: str) -> None:
    with pytest.raises(StreamsError, match=rf"^SINK \(topic 'out'\): a step needs a {part} serde"):
        CompiledPlan(source("SOURCE", "in"), sink("SINK", "out"), settings={f"default.{part}.serde": None})


def test_sink_whose_topic_is_chosen_per_record_is_named_alone() -> None:
    with pytest.raises(StreamsError, match=r"^SINK: a step needs a value serde"):
        CompiledPlan(sink("SINK", lambda key, value, context: "out"), settings={"default.value.serde": None})


def test_sink_writes_with_its_own_serializers_to_its_topic_or_to_the_one_that_is_chosen() -> None:
    compiled = CompiledPlan(
        source("SOURCE", "in", children=("FIXED", "CHOSEN")),
        sink("FIXED", "out", value_serializer=Serdes.long().serializer),
        sink("CHOSEN", lambda key, value, context: f"out-{value}", value_serializer=Serdes.integer().serializer),
    )
    compiled.state.current.raw = (RAW, 5, HEADERS)

    compiled.feed(7)

    assert compiled.sent() == [("out", (7).to_bytes(8, "big")), ("out-7", (7).to_bytes(4, "big"))]


@pytest.mark.parametrize("topic", ["out", lambda key, value, context: "out"], ids=["fixed", "chosen"])
def test_sink_answers_for_records_that_are_not_delivered(topic: Any) -> None:
    compiled = CompiledPlan(source("SOURCE", "in", children=("SINK",)), sink("SINK", topic))
    collector = compiled.state.collector

    collector.delivery_failed(FakeKafkaError("MSG_SIZE_TOO_LARGE"), message("out", -1, b"v", 5))

    with pytest.raises(DeliveryError, match="SINK"):
        collector.check()


def test_partitioner_by_reference_writes_references_with_the_default_serde() -> None:
    compiled = CompiledPlan(
        source("SOURCE", "in", children=("SINK",)),
        sink("SINK", "out", partitioner=ReferencePartitioner(lambda key: key[0], None)),
    )
    expected = [partition_for_key(letter.encode(), 4) for letter in "abcdefg"]

    for letter in "abcdefg":
        compiled.feed("x", key=f"{letter} and more")

    assert [record.partition for record in compiled.producer.take()] == expected
    assert len(set(expected)) > 1


NAMED, MATCHING = source("NAMED", "orders", "log-1"), source("MATCHING", pattern=re.compile(r"log-\d+"))
READS = plans.part(3, MATCHING, NAMED)


@pytest.mark.parametrize(
    ("topic", "found"),
    [
        ("orders", NAMED),
        ("log-1", NAMED),
        ("log-2", MATCHING),
        (r"log-\d+", MATCHING),
    ],
    ids=["by name", "by name before a pattern", "by pattern", "by the pattern itself"],
)
def test_topic_is_read_by_the_source_that_names_it_or_else_by_one_that_matches_it(topic: str, found: Any) -> None:
    assert source_of(READS, topic) is found


@pytest.mark.parametrize("topic", ["customers", "my-log-2", "log-2-old", "order"])
def test_topic_that_no_source_reads_is_an_error_that_asks_about_other_workers(topic: str) -> None:
    with pytest.raises(StreamsError, match=f"no source of sub-topology 3 reads topic '{topic}'; do all workers"):
        source_of(READS, topic)
