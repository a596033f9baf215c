"""Types in place of serdes: as given, passed on, and taken from the annotations of functions."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pykstreams import (
    Consumed,
    FixedKeyProcessor,
    FixedKeyRecord,
    Grouped,
    Joined,
    JoinWindows,
    KeyValue,
    KStream,
    KTable,
    Materialized,
    Processor,
    Produced,
    Record,
    SessionWindows,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from pykstreams.core.errors import ConfigError
from pykstreams.serdes import JsonSerde, Serdes
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.checks.missing_serdes import missing_serdes
from pykstreams.topology.plan import SinkNode, TopologyPlan

if TYPE_CHECKING:
    from decimal import Decimal as Missing

CONFIG = StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1"})
T = TypeVar("T")

KEYS = "JsonKeySerde(Id)"
ORDERS = "JsonSerde(Order)"
TOTALS = "JsonSerde(Total)"
TEXT = "StringSerde(encoding='utf-8')"
LONG = "LongSerde()"


@dataclass(frozen=True)
class Id:
    name: str


@dataclass
class Order:
    customer: str
    amount: int


@dataclass
class Total:
    amount: int = 0


class Shape:
    """A class without serde."""


def streams(builder: StreamsBuilder) -> KStream[str, Order]:
    return builder.stream("orders", str, Order)


def table(builder: StreamsBuilder) -> KTable[str, Order]:
    return builder.table("customers", str, Order)


def total(order: Order) -> Total:
    return Total(order.amount)


def maybe_total(order: Order) -> Total | None:
    return Total(order.amount) if order.amount else None


def totals(order: Order) -> Iterator[Total]:
    yield Total(order.amount)


async def total_later(order: Order) -> Total:
    return Total(order.amount)


def by_customer(key: str, order: Order) -> Id:
    return Id(order.customer)


def rekeyed(key: str, order: Order) -> tuple[Id, Total]:
    return Id(order.customer), Total(order.amount)


def rekeyed_pair(key: str, order: Order) -> KeyValue[Id, Total]:
    return KeyValue(Id(order.customer), Total(order.amount))


def rekeyed_many(key: str, order: Order) -> list[tuple[Id, Total]]:
    return [rekeyed(key, order)]


def add(key: str, order: Order, total: Total) -> Total:
    return Total(total.amount + order.amount)


def both(order: Order, other: Order) -> Total:
    return Total(order.amount + other.amount)


def merge_totals(key: str, one: Total, other: Total) -> Total:
    return Total(one.amount + other.amount)


async def look_up(name: str) -> Order | None:
    return None


def looked_up(order: Order, other: Order | None) -> Total:
    return Total(order.amount)


def same(value: T) -> T:
    return value


def shape(order: Order) -> Shape:
    return Shape()


def missing(order: Order) -> Missing | None:
    return None


class Adder:
    def of(self, order: Order) -> Total:
        return Total(order.amount)

    def __call__(self, order: Order) -> Total:
        return Total(order.amount)


class ToTotals(Processor[str, Order, Id, Total]):
    def process(self, record: Record[str, Order]) -> None:
        """Forwards nothing."""


class ToFixedTotals(FixedKeyProcessor[str, Order, Total]):
    def process(self, record: FixedKeyRecord[str, Order]) -> None:
        """Forwards nothing."""


def new_processor() -> ToTotals:
    return ToTotals()


WINDOWS = JoinWindows(timedelta(minutes=5))

Build = Callable[[StreamsBuilder], KStream[Any, Any]]

STEPS: list[tuple[str, Build, str, str]] = [
    ("stream", lambda b: streams(b), TEXT, ORDERS),
    ("filter", lambda b: streams(b).filter(lambda key, order: True), TEXT, ORDERS),
    ("map_values", lambda b: streams(b).map_values(total), TEXT, TOTALS),
    ("map_values to none", lambda b: streams(b).map_values(maybe_total), TEXT, TOTALS),
    ("map_values by a class", lambda b: streams(b).map_values(str), TEXT, TEXT),
    ("map_values by a partial function", lambda b: streams(b).map_values(functools.partial(total)), TEXT, TOTALS),
    ("map_values by a method", lambda b: streams(b).map_values(Adder().of), TEXT, TOTALS),
    ("map_values by an object", lambda b: streams(b).map_values(Adder()), TEXT, TOTALS),
    ("map_values by a cached function", lambda b: streams(b).map_values(functools.cache(total)), TEXT, TOTALS),
    ("map_values_async", lambda b: streams(b).map_values_async(total_later), TEXT, TOTALS),
    ("lookup", lambda b: streams(b).lookup(look_up, looked_up, key=lambda key, order: "a"), TEXT, TOTALS),
    ("flat_map_values", lambda b: streams(b).flat_map_values(totals), TEXT, TOTALS),
    ("select_key", lambda b: streams(b).select_key(by_customer), KEYS, ORDERS),
    ("map", lambda b: streams(b).map(rekeyed), KEYS, TOTALS),
    ("map to a KeyValue", lambda b: streams(b).map(rekeyed_pair), KEYS, TOTALS),
    ("flat_map", lambda b: streams(b).flat_map(rekeyed_many), KEYS, TOTALS),
    ("merge", lambda b: streams(b).merge(b.stream("others", str, Order)), TEXT, ORDERS),
    ("repartition", lambda b: streams(b).select_key(by_customer).repartition(), KEYS, ORDERS),
    ("process", lambda b: streams(b).process(ToTotals), KEYS, TOTALS),
    ("process by a function", lambda b: streams(b).process(new_processor), KEYS, TOTALS),
    ("process_values", lambda b: streams(b).process_values(ToFixedTotals), TEXT, TOTALS),
    ("join of streams", lambda b: streams(b).join(b.stream("others", str, Order), both, windows=WINDOWS), TEXT, TOTALS),
    ("join with a table", lambda b: streams(b).join(table(b), both), TEXT, TOTALS),
    (
        "join with a global table",
        lambda b: streams(b).join(b.global_table("all", str, Order), both, key_selector=lambda key, order: key),
        TEXT,
        TOTALS,
    ),
    (
        "join with a table by a foreign key",
        lambda b: streams(b).join(table(b), both, key_selector=lambda key, order: order.customer),
        TEXT,
        TOTALS,
    ),
    ("count", lambda b: streams(b).group_by(by_customer).count().to_stream(), KEYS, LONG),
    ("reduce", lambda b: streams(b).group_by(by_customer).reduce(lambda one, other: other).to_stream(), KEYS, ORDERS),
    ("aggregate", lambda b: streams(b).group_by_key().aggregate(Total, add).to_stream(), TEXT, TOTALS),
    (
        "aggregate by what it begins with",
        lambda b: streams(b).group_by_key().aggregate(Total, lambda key, order, total: total).to_stream(),
        TEXT,
        TOTALS,
    ),
    (
        "aggregate in windows",
        lambda b: streams(b).group_by_key().windowed_by(TimeWindows(5)).aggregate(Total, add).to_stream(),
        f"TimeWindowedSerializer(inner={TEXT})",
        TOTALS,
    ),
    (
        "aggregate in sessions",
        lambda b: (
            streams(b).group_by_key().windowed_by(SessionWindows(5)).aggregate(Total, add, merge_totals).to_stream()
        ),
        f"SessionWindowedSerializer(inner={TEXT})",
        TOTALS,
    ),
    (
        "cogroup",
        lambda b: (
            streams(b)
            .group_by_key()
            .cogroup(add)
            .cogroup(b.stream("others", str, Order).group_by_key(), add)
            .aggregate(Total)
            .to_stream()
        ),
        TEXT,
        TOTALS,
    ),
    (
        "cogroup by what a lambda is said to return",
        lambda b: (
            streams(b)
            .group_by_key()
            .cogroup(lambda key, order, total: total, returns=Total)
            .aggregate(lambda: Total())
            .to_stream()
        ),
        TEXT,
        TOTALS,
    ),
    ("to_table", lambda b: streams(b).to_table(materialized="kept").to_stream(), TEXT, ORDERS),
    ("table", lambda b: table(b).to_stream(), TEXT, ORDERS),
    (
        "filter of a table",
        lambda b: table(b).filter(lambda key, order: True, materialized="kept").to_stream(),
        TEXT,
        ORDERS,
    ),
    ("map_values of a table", lambda b: table(b).map_values(total, materialized="kept").to_stream(), TEXT, TOTALS),
    ("group_by of a table", lambda b: table(b).group_by(rekeyed).count().to_stream(), KEYS, LONG),
    (
        "aggregate of a table",
        lambda b: (
            table(b)
            .group_by(lambda key, order: (key, order), Grouped(key_serde=str, value_serde=Order))
            .aggregate(Total, add, add)
            .to_stream()
        ),
        TEXT,
        TOTALS,
    ),
    ("join of tables", lambda b: table(b).join(b.table("others", str, Order), both).to_stream(), TEXT, TOTALS),
    (
        "join of tables in a store",
        lambda b: table(b).join(b.table("others", str, Order), both, materialized="kept").to_stream(),
        TEXT,
        TOTALS,
    ),
    (
        "foreign-key join",
        lambda b: (
            table(b)
            .join(b.table("others", str, Order), both, foreign_key_extractor=lambda order: order.customer)
            .to_stream()
        ),
        TEXT,
        TOTALS,
    ),
    (
        "join by foreign keys",
        lambda b: (
            table(b)
            .join(b.table("others", str, Order), both, foreign_keys_extractor=lambda order: [order.customer])
            .to_stream()
        ),
        f"CombinedKeySerde(prefix={TEXT}, suffix={TEXT})",
        TOTALS,
    ),
]


@pytest.mark.parametrize(("build", "key", "value"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS])
def test_result_of_a_step_has_the_serdes_of_its_types(build: Build, key: str, value: str) -> None:
    plan = written(build)

    assert sink_serdes(plan) == (key, value)
    assert missing_serdes(plan, CONFIG) == []


@pytest.mark.parametrize("build", [step[1] for step in STEPS], ids=[step[0] for step in STEPS])
def test_a_step_is_drawn_in_a_notebook_below_what_leads_to_it(build: Build) -> None:
    stream = build(StreamsBuilder())
    name = repr(stream).rstrip(">").rpartition(" ")[2]

    drawn = stream._repr_html_()

    assert f'data-name="{name}' in drawn
    assert 'data-name="orders"' in drawn or 'data-name="customers"' in drawn


@pytest.mark.parametrize(
    "build",
    [
        lambda b: said(b).map_values(lambda order: order),
        lambda b: said(b).map_values(same),
        lambda b: said(b).map_values(len_of_any),
        lambda b: said(b).flat_map_values(several),
        lambda b: said(b).flat_map_values(pieces),
        lambda b: said(b).merge(said(b, "others")),
        lambda b: said(b).to_table(materialized=Materialized("kept", key_serde=Serdes.string())).to_stream(),
    ],
)
def test_where_no_type_is_said_the_default_serde_is_taken_as_in_kafka_streams(build: Build) -> None:
    plan = written(build)

    told = missing_serdes(plan, CONFIG)

    assert len(told) >= 1
    assert "value serde and none is set" in told[-1]


def said(builder: StreamsBuilder, topic: str = "orders") -> KStream[str, Order]:
    return builder.stream(topic, Consumed(key_serde=Serdes.string(), value_serde=JsonSerde(Order)))


def len_of_any(order: Order) -> object:
    return order


def several(order: Order) -> list[Order]:
    return [order]


def pieces(order: Order) -> Iterator[Order]:
    yield order


# as somebody writes it who does not say what is in them
several.__annotations__["return"] = "typing.List"
pieces.__annotations__["return"] = typing.Iterator


def test_a_serde_that_is_given_counts_more_than_the_type_of_a_function() -> None:
    given: Materialized[str, Any] = Materialized("totals", value_serde=JsonSerde())
    plan = written(lambda b: streams(b).group_by_key().aggregate(Total, add, materialized=given).to_stream())

    assert sink_serdes(plan)[1] == "JsonSerde()"


def test_types_count_in_options_as_serdes_do() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("orders", Consumed(key_serde=str, value_serde=Order, name="in"))
    other = builder.table("others", materialized=Materialized(key_serde=str, value_serde=Order))
    joined = stream.join(other, lambda one, two: one, joined=Joined(key_serde=str, value_serde=Order))
    joined.to("out", Produced(key_serde=str, value_serde=Order))

    assert sink_serdes(builder.build().plan(CONFIG)) == (TEXT, ORDERS)


def test_a_type_without_serde_is_refused_where_it_is_given() -> None:
    with pytest.raises(TypeError, match=r"value_serde of Consumed: there is no serde for Shape; register one"):
        StreamsBuilder().stream("orders", str, Shape)


def test_one_type_without_the_other_is_refused() -> None:
    with pytest.raises(TypeError, match="is given as the type of keys, without that of values; give both"):
        StreamsBuilder().stream("orders", str)  # type: ignore[call-overload]


def test_a_type_beside_options_is_refused() -> None:
    with pytest.raises(TypeError, match=r"the type of values, .* is given beside Consumed"):
        StreamsBuilder().stream("orders", Consumed(), Order)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (
            shape,
            r"\(shape \(test_inference.py:\d+\) is annotated, but there is no serde for Shape; register one, types.reg",
        ),
        (
            missing,
            r"\(missing \(test_inference.py:\d+\) is annotated with 'Missing \| None', and name 'Missing' is not "
            r"defined; import Missing at run time, not under TYPE_CHECKING, or move it to the level of a module, or "
            r"give a serde\)",
        ),
    ],
)
def test_a_serde_that_is_missing_is_told_with_the_function_that_might_have_said_it(
    function: Callable[[Order], object], why: str
) -> None:
    plan = written(lambda b: streams(b).map_values(function))

    (told,) = missing_serdes(plan, CONFIG)

    assert told.startswith("KSTREAM-SINK-0000000002 (topic 'out') needs a value serde and none is set (")
    with pytest.raises(ConfigError, match=why):
        raise ConfigError(told)


def test_a_serde_that_is_missing_is_told_with_the_line_of_a_function_without_annotations() -> None:
    plan = written(lambda b: streams(b).select_key(lambda key, order: order.customer))

    (told,) = missing_serdes(plan, CONFIG)

    line = test_a_serde_that_is_missing_is_told_with_the_line_of_a_function_without_annotations.__code__.co_firstlineno
    assert (
        f"a key serde and none is set (no annotation says what <lambda> (test_inference.py:{line + 1}) returns)" in told
    )


def test_a_function_without_serde_is_no_error_where_none_is_needed() -> None:
    plan = written(lambda b: streams(b).map_values(shape).map_values(lambda shape: shape).map_values(str))

    assert missing_serdes(plan, CONFIG) == []


def test_annotations_of_local_types_are_found() -> None:
    @dataclass
    class Local:
        name: str

    def local(order: Order) -> Local:
        return Local(order.customer)

    assert sink_serdes(written(lambda b: streams(b).map_values(local)))[1].startswith("JsonSerde(")


def test_stores_of_a_step_have_its_types() -> None:
    plan = written(lambda b: streams(b).select_key(by_customer).group_by_key().count(materialized="counts").to_stream())

    store = stores(plan)["counts"]

    assert (repr(store.key_serde), repr(store.value_serde)) == (KEYS, LONG)


def test_names_are_those_of_a_topology_that_says_its_serdes() -> None:
    def by_types(builder: StreamsBuilder) -> KStream[Any, Any]:
        counted = streams(builder).group_by(by_customer).count()
        return counted.to_stream().map(lambda key, count: (key, count))

    def by_serdes(builder: StreamsBuilder) -> KStream[Any, Any]:
        grouped: Grouped[Id, Order] = Grouped(key_serde=JsonSerde(Id), value_serde=JsonSerde(Order))
        counted = said(builder).group_by(lambda key, order: Id(order.customer), grouped).count()
        return counted.to_stream().map(lambda key, count: (key, count))

    assert described(by_types) == described(by_serdes)


def written(build: Build) -> TopologyPlan:
    builder = StreamsBuilder()
    build(builder).to("out")
    return builder.build().plan(CONFIG)


def described(build: Build) -> str:
    builder = StreamsBuilder()
    build(builder).to("out")
    return str(builder.build().describe())


def sink_serdes(plan: TopologyPlan) -> tuple[str, str]:
    sinks = [
        node
        for part in plan.subtopologies
        for node in part.nodes.values()
        if isinstance(node, SinkNode) and node.topic == "out"
    ]
    (sink,) = sinks
    return repr(sink.key_serializer), repr(sink.value_serializer)


def stores(plan: TopologyPlan) -> dict[str, StoreBuilder[Any]]:
    return {name: builder for part in plan.subtopologies for name, builder in part.stores.items()}


@pytest.mark.parametrize("given", ["str", 5])
def test_what_is_neither_a_type_nor_a_serde_is_refused_with_the_field(given: Any) -> None:
    with pytest.raises(
        TypeError, match=rf"^key_serde of Consumed: {given!r} is neither a type nor a serde; pass a type"
    ):
        StreamsBuilder().stream("in", given, str)
