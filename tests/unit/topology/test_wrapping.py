"""``processor.wrapper.class``: every node of a topology goes through the wrapper when it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from pykstreams import (
    FixedKeyProcessor,
    Joined,
    KStream,
    KTable,
    Processor,
    ProcessorWrapper,
    Serdes,
    Stores,
    StreamsBuilder,
    TimeWindows,
    Topology,
)
from pykstreams.errors import StreamsError, TopologyError
from pykstreams.testing import TopologyTestDriver
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
