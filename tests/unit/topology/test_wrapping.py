"""``processor.wrapper.class``: every node of a topology goes through the wrapper when it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from pykstreams import (
    CountWindows,
    ErrorHandlerContext,
    ErrorHandlerResponse,
    FixedKeyProcessor,
    Joined,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    ProcessingExceptionHandler,
    Processor,
    ProcessorWrapper,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    Topology,
)
from pykstreams.errors import StreamsError, TopologyError
from pykstreams.runtime.key_places.keyed_inputs import keyed_inputs
from pykstreams.testing import TopologyTestDriver
from pykstreams.topology.changes.shape import shape_of
from tests.unit.user_processors import Forward, ForwardValue

TEXT = Serdes.string()


class CountsInput:
    """Counts what goes into a node before the node sees it."""

    def __init__(self, inner: Any, name: str, seen: list[str]) -> None:
        self.inner, self.name, self.seen = inner, name, seen

    def init(self, context: Any) -> None:
        self.inner.init(context)

    def process(self, record: Any) -> None:
        self.seen.append(self.name)
        self.inner.process(record)

    def close(self) -> None:
        self.inner.close()


class Around(CountsInput, Processor[Any, Any, Any, Any]):
    """Stands around a processor."""


class AroundValue(CountsInput, FixedKeyProcessor[Any, Any, Any]):
    """Stands around a processor that keeps the key."""


class CountingWrapper(ProcessorWrapper):
    def __init__(self) -> None:
        self.seen: list[str] = []
        self.configured: list[Mapping[str, object]] = []

    def configure(self, configs: Mapping[str, object]) -> None:
        self.configured.append(configs)

    def wrap_processor_supplier(self, name: str, supplier: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: Around(supplier(), name, self.seen)

    def wrap_fixed_key_processor_supplier(self, name: str, supplier: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: AroundValue(supplier(), name, self.seen)


def script(builder: StreamsBuilder) -> None:
    stream: KStream[str, str] = builder.stream("in")
    stream.filter(lambda k, v: v != "no", name="filter").process(Forward, name="process").process_values(
        ForwardValue, name="values"
    ).to("out")
    stream.group_by_key().count(materialized="counts", name="count").to_stream(name="changes").map_values(str).to("out")
    branches = stream.split(name="by-").branch(lambda k, v: v == "a", "a").default_branch("rest")
    branches["by-a"].to("a")
    branches["by-rest"].to("rest")
    windows = stream.group_by_key().windowed_by(TimeWindows(10)).count()
    windows.to_stream(lambda windowed, count: windowed.key).map_values(str).to("windows")
    stream.join(builder.table("table"), lambda left, right: left + right, joined=Joined(name="join")).to("joined")


def settings(wrapper: ProcessorWrapper | None) -> dict[str, object]:
    given = {"application.id": "app", "default.key.serde": TEXT, "default.value.serde": TEXT}
    return given if wrapper is None else {**given, "processor.wrapper.class": wrapper}


def produced(wrapper: ProcessorWrapper | None, caching: int) -> list[Any]:
    config = {**settings(wrapper), "statestore.cache.max.bytes": caching}
    builder = StreamsBuilder(config)
    script(builder)
    with TopologyTestDriver(builder.build(config), config) as driver:
        driver.create_input_topic("table", TEXT, TEXT).pipe_input("k", "t", 1)
        topic = driver.create_input_topic("in", TEXT, TEXT)
        for at, (key, value) in enumerate([("k", "a"), ("l", "no"), (None, "c"), ("k", None), ("k", "d")]):
            topic.pipe_input(key, value, at + 2)
        driver.advance_wall_clock_time(100_000)
        return driver.take_produced()


@pytest.mark.parametrize("caching", [0, 10_000])
def test_nodes_do_behind_a_wrapper_what_they_do_without(caching: int) -> None:
    wrapper = CountingWrapper()

    assert produced(wrapper, caching) == produced(None, caching)
    assert {"filter", "process", "values", "count", "changes", "by-", "join"} <= set(wrapper.seen)
    assert len(wrapper.configured) >= 1


def test_nodes_that_come_back_as_they_went_stay_as_they_are() -> None:
    class Names(CountingWrapper):
        def wrap_processor_supplier(self, name: str, supplier: Callable[[], Any]) -> Callable[[], Any]:
            self.seen.append(name)
            return supplier

    wrapper = Names()
    plain, given = StreamsBuilder(settings(None)), StreamsBuilder(settings(wrapper))
    for builder in (plain, given):
        builder.stream("in").filter(lambda k, v: bool(v), name="filter").to("out")

    assert str(given.build().describe()) == str(plain.build().describe())
    assert wrapper.seen == ["filter"]


class WithStore(Forward):
    @staticmethod
    def stores() -> list[Any]:
        return [store("own")]


def store(name: str) -> Any:
    return Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), TEXT, TEXT)


class AddsStore(CountingWrapper):
    def wrap_processor_supplier(self, name: str, supplier: Any) -> Callable[[], Any]:
        class Supplier:
            def __call__(self) -> Any:
                return supplier()

            def stores(self) -> list[Any]:
                return [*(supplier.stores() if hasattr(supplier, "stores") else ()), store("more")]

        return Supplier()


def test_stores_of_a_supplier_and_of_its_wrapper_are_added() -> None:
    topology = Topology(settings(AddsStore())).add_source("s", "in").add_processor("p", WithStore, "s")
    builder = StreamsBuilder(settings(AddsStore()))
    builder.stream("in").process(WithStore, name="p")

    assert "(stores: [more, own])" in str(topology.describe())
    assert "(stores: [more, own])" in str(builder.build().describe())


def test_wrapper_must_give_a_supplier() -> None:
    class Nothing(CountingWrapper):
        def wrap_processor_supplier(self, name: str, supplier: Callable[[], Any]) -> Any:
            return None

    topology = Topology(settings(Nothing())).add_source("s", "in")

    with pytest.raises(TopologyError, match=r"Nothing\.wrap_processor_supplier gave None for 'p'; give a callable"):
        topology.add_processor("p", Forward, "s")


def test_wrapper_must_not_keep_what_it_was_given() -> None:
    class Keeping(CountingWrapper):
        def wrap_processor_supplier(self, name: str, supplier: Callable[[], Any]) -> Callable[[], Any]:
            kept = supplier()
            return lambda: Around(kept, name, self.seen)

    builder = StreamsBuilder(settings(Keeping()))
    builder.stream("in").filter(lambda k, v: bool(v)).to("out")

    with pytest.raises(StreamsError, match="was made before its task: a wrapper must call the supplier"):
        TopologyTestDriver(builder.build(), settings(None))


class SeesForwarded(CountsInput, Processor[Any, Any, Any, Any]):
    """Stands behind a processor."""

    def init(self, context: Any) -> None:
        def forward(record: Any, child: str | None = None) -> None:
            self.seen.append(self.name)
            context.forward(record, child)

        self.inner.init(SimpleNamespace(forward=forward))

    def process(self, record: Any) -> None:
        self.inner.process(record)


class WrapperBehind(ProcessorWrapper):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def wrap_processor_supplier(self, name: str, supplier: Any) -> Any:
        return lambda: SeesForwarded(supplier(), name, self.seen)

    def wrap_fixed_key_processor_supplier(self, name: str, supplier: Any) -> Any:
        return supplier


def test_nothing_goes_into_a_topic_past_a_wrapper() -> None:
    wrapper = WrapperBehind()
    config = {**settings(wrapper), "statestore.cache.max.bytes": 0}
    builder = StreamsBuilder(config)
    left: KTable[str, str] = builder.table("left")
    right: KTable[str, str] = builder.table("right")
    joined = left.join(
        right, lambda a, b: a + b, foreign_key_extractor=lambda a: a, name="join", materialized="results"
    )
    joined.to_stream(name="stream").to("out")
    with TopologyTestDriver(builder.build(config), config) as driver:
        driver.create_input_topic("right", TEXT, TEXT).pipe_input("x", "X", 1)
        driver.create_input_topic("left", TEXT, TEXT).pipe_input("1", "x", 2)
        driver.create_input_topic("right", TEXT, TEXT).pipe_input("x", "Y", 3)
        values = [record.value for record in driver.take_produced() if record.topic == "out"]

    assert values == [b"xX", b"xY"]
    answering = {"join-subscription-join-foreign", "join-foreign-join-subscription", "join-result", "stream"}
    assert answering <= set(wrapper.seen)


class PassesThrough(ProcessorWrapper):
    """Gives another supplier of the same processors."""

    def wrap_processor_supplier(self, name: str, supplier: Any) -> Any:
        return lambda: supplier()

    def wrap_fixed_key_processor_supplier(self, name: str, supplier: Any) -> Any:
        return lambda: supplier()


def by_foreign_key(builder: StreamsBuilder) -> None:
    orders: KTable[str, str] = builder.table("orders")
    customers: KTable[str, str] = builder.table("customers")
    joined = orders.join(customers, lambda order, customer: order + customer, foreign_key_extractor=lambda order: order)
    joined.to_stream().to("out")


def waiting(builder: StreamsBuilder) -> None:
    left: KStream[str, str] = builder.stream("left")
    right: KStream[str, str] = builder.stream("right")
    left.left_join(right, lambda one, other: f"{one}{other}", windows=JoinWindows(1000)).to("out")


def waiting_by_another_key(builder: StreamsBuilder) -> None:
    stream: KStream[str, str] = builder.stream("in")
    table: KTable[str, str] = builder.table(
        "rates", materialized=Materialized(Stores.persistent_versioned_key_value_store("rates", 1000))
    )
    joined: Joined[str, str, str] = Joined(grace_period=10)
    stream.join(table, lambda one, other: one, key_selector=lambda key, value: value, joined=joined).to("out")


def counted_by_three(builder: StreamsBuilder) -> None:
    stream: KStream[str, str] = builder.stream("in")
    stream.group_by_key().windowed_by(CountWindows(3)).count().map_values(str).to("out")


def counted(builder: StreamsBuilder) -> None:
    stream: KStream[str, str] = builder.stream("in")
    stream.group_by_key().windowed_by(TimeWindows(10)).count(materialized="counts")


def built(build: Callable[[StreamsBuilder], None], wrapper: ProcessorWrapper | None) -> Topology:
    builder = StreamsBuilder(settings(wrapper))
    build(builder)
    return builder.build(settings(wrapper))


@pytest.mark.parametrize("caching", [0, 10_000])
def test_foreign_key_join_answers_behind_a_wrapper(caching: int) -> None:
    config = {**settings(PassesThrough()), "statestore.cache.max.bytes": caching}
    with TopologyTestDriver(built(by_foreign_key, PassesThrough()), config) as driver:
        driver.create_input_topic("customers", TEXT, TEXT).pipe_input("ann", "Ann", 1)
        driver.create_input_topic("orders", TEXT, TEXT).pipe_input("o1", "ann", 2)

        assert driver.create_output_topic("out", TEXT, TEXT).read_key_values() == [("o1", "annAnn")]


@pytest.mark.parametrize("wrapper", [None, PassesThrough()], ids=["plain", "wrapped"])
@pytest.mark.parametrize(
    ("build", "takes_back", "reads_messages"),
    [
        (waiting, True, False),
        (waiting_by_another_key, True, False),
        (counted_by_three, True, False),
        (by_foreign_key, False, True),
    ],
)
def test_plan_knows_what_operators_do_behind_a_wrapper(
    build: Callable[[StreamsBuilder], None], takes_back: bool, reads_messages: bool, wrapper: ProcessorWrapper | None
) -> None:
    parts = built(build, wrapper).plan(StreamsConfig(settings(None))).subtopologies

    assert takes_back == any(part.takes_back for part in parts)
    assert reads_messages == any(part.reads_messages for part in parts)


class NotesRawKeys(ProcessingExceptionHandler):
    def __init__(self) -> None:
        self.keys: list[bytes | None] = []

    def handle_error(self, context: ErrorHandlerContext, record: object, exception: Exception) -> ErrorHandlerResponse:
        self.keys.append(context.source_raw_key)
        return ErrorHandlerResponse.resume()


@pytest.mark.parametrize("wrapper", [None, PassesThrough()], ids=["plain", "wrapped"])
def test_record_that_was_sent_as_it_came_is_let_go_behind_a_wrapper(wrapper: ProcessorWrapper | None) -> None:
    handler = NotesRawKeys()
    config = {**settings(wrapper), "processing.exception.handler": handler}
    builder = StreamsBuilder(config)
    stream: KStream[str, str] = builder.stream("in")
    stream.split(name="by-").default_branch("all")["by-all"].to("out")
    stream.map_values(int)
    with TopologyTestDriver(builder.build(config), config) as driver:
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "no number", 1)

    assert handler.keys == [None]


@pytest.mark.parametrize("build", [waiting, by_foreign_key, counted, script])
def test_topology_is_described_behind_a_wrapper_as_without(build: Callable[[StreamsBuilder], None]) -> None:
    plain, behind = built(build, None), built(build, PassesThrough())
    config = StreamsConfig(settings(None))

    assert behind.describe().to_dict() == plain.describe().to_dict()
    assert shape_of(behind.plan(config), config) == shape_of(plain.plan(config), config)
    counts = {topic: 2 for part in plain.plan(config).subtopologies for topic in part.source_topics}
    assert keyed_inputs(behind.plan(config), counts) == keyed_inputs(plain.plan(config), counts)
