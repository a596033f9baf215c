"""The one-to-many join as a user writes it: the table of the proposal, what is named and created, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykstreams import Consumed, Grouped, KTable, Materialized, Produced, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Forward, Headers
from pykstreams.errors import LogAndContinueProcessingExceptionHandler, ProcessingError, StreamsError, TopologyError
from pykstreams.serdes import CombinedKey, CombinedKeySerde, JsonCombinedKeySerde, Serde
from pykstreams.testing import TopologyTestDriver
from pykstreams.topology.graph import OperatorNode

CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "statestore.cache.max.bytes": 0,
    }
)
HEADERS = (("trace", b"1"),)
COMBINED = CombinedKeySerde(Serdes.string(), Serdes.string())


def both(one: str, many: str) -> str:
    return f"{one}+{many}"


def first_part(value: str) -> str | None:
    """The key of the one, in front of the comma."""
    return value.partition(",")[0] or None


def table_of(builder: StreamsBuilder, topic: str) -> KTable[str, str]:
    return builder.table(topic)


def joined(builder: StreamsBuilder, **options: Any) -> KTable[Any, str]:
    one, many = table_of(builder, "one"), table_of(builder, "many")
    return one.one_to_many_join(many, both, **{"key_extractor": first_part, **options})


class OneToManyRun:
    """A driver, a way to write, and what the tests want to see of it."""

    def __init__(self, driver: TopologyTestDriver) -> None:
        self.driver = driver

    def put(self, topic: str, key: Any, value: Any, time: int = 0, headers: Headers = ()) -> None:
        source = self.driver.create_input_topic(topic, Serdes.string(), Serdes.string())
        source.pipe_input(key, value, timestamp=time, headers=headers)

    def rows_of(self, store: str) -> dict[Any, Any]:
        rows = self.driver.get_key_value_store(store)
        assert rows is not None
        return dict(rows.all())

    def out(self, serde: Serde[Any] = COMBINED) -> list[tuple[Any, Any]]:
        topic = self.driver.create_output_topic("out", serde, Serdes.string())
        return [(record.key, record.value) for record in topic.read_records()]


def run(builder: StreamsBuilder, use: Callable[[OneToManyRun], Any], partitions: int = 1, **config: object) -> Any:
    settings = CONFIG if not config else StreamsConfig({**CONFIG, **config})
    with TopologyTestDriver(builder.build(), settings, partitions=partitions) as driver:
        return use(OneToManyRun(driver))


# The step-by-step table of the proposal.


class _Notes:
    """An operator that writes down the changes it sees."""

    def __init__(self, seen: list[tuple[Any, Any, Any]]) -> None:
        self._seen = seen

    def build(self, context: OperatorContext) -> Forward:
        def note(key: Any, change: Any, timestamp: int, headers: Headers) -> None:
            self._seen.append((*key, change[:2]) if isinstance(key, tuple) else (key, change[:2]))

        return note


STEPS: list[tuple[tuple[str, str, str | None], list[Any], list[Any]]] = [
    # input, what goes to the task of A (partition key, key, value), changes of the result
    (("one", "A0", "[A0]"), [], []),
    (("one", "A1", "[A1]"), [], []),
    (("many", "B0", "A2,[B0]"), [("A2", "B0", "A2,[B0]")], []),
    (("many", "B1", "A2,[B1]"), [("A2", "B1", "A2,[B1]")], []),
    (
        ("one", "A2", "[A2]"),
        [],
        [("A2", "B0", ("[A2]+A2,[B0]", None)), ("A2", "B1", ("[A2]+A2,[B1]", None))],
    ),
    (("many", "B1", None), [("A2", "B1", None)], [("A2", "B1", (None, "[A2]+A2,[B1]"))]),
    (("many", "B3", "A0,[B3]"), [("A0", "B3", "A0,[B3]")], [("A0", "B3", ("[A0]+A0,[B3]", None))]),
    (("one", "A2", None), [], [("A2", "B0", (None, "[A2]+A2,[B0]"))]),
]
REPARTITIONED_AFTER = [
    {},
    {},
    {("A2", "B0")},
    {("A2", "B0"), ("A2", "B1")},
    {("A2", "B0"), ("A2", "B1")},
    {("A2", "B0")},
    {("A2", "B0"), ("A0", "B3")},
    {("A2", "B0"), ("A0", "B3")},
]


@pytest.mark.parametrize("step", range(len(STEPS)))
@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("materialized", [None, "joined"])
def test_each_row_of_the_table_of_the_proposal(step: int, partitions: int, materialized: str | None) -> None:
    builder = StreamsBuilder()
    seen: list[tuple[Any, Any, Any]] = []
    table = joined(builder, name="join", materialized=materialized)
    table._table.logic.send_old_values(force=True)
    node = OperatorNode("NOTES", lambda: _Notes(seen))
    table._table.place.graph.add(node, table._table.place.node)

    def use(run: OneToManyRun) -> None:
        for (topic, key, value), _, _ in STEPS[:step]:
            run.put(topic, key, value)
        run.driver.take_produced()
        seen.clear()
        (topic, key, value), repartitioned, changes = STEPS[step]
        run.put(topic, key, value)
        sent = [record for record in run.driver.take_produced() if record.topic == "app-join-repartition"]

        kept = run.driver.raw_store("join-shipped-store")

        assert [(*_combined(record.key), _text(record.value)) for record in sent] == repartitioned
        assert {tuple(_combined(key)) for key, *_ in kept} == set(REPARTITIONED_AFTER[step])
        assert sorted(changes) == sorted(seen)

    run(builder, use, partitions)


def _combined(data: bytes | None) -> CombinedKey[str, str]:
    key = COMBINED.deserialize("", data)
    assert key is not None
    return key


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


# What comes of changes that the table does not show.


def of(*records: tuple[Any, ...], **options: Any) -> list[tuple[Any, Any]]:
    """What topic ``out`` gets when the records come, in four partitions."""
    builder = StreamsBuilder()
    joined(builder, **options).to_stream().to("out", Produced(key_serde=COMBINED))

    def use(run: OneToManyRun) -> list[tuple[Any, Any]]:
        for record in records:
            run.put(*record)
        return run.out()

    results: list[tuple[Any, Any]] = run(builder, use, 4)
    return results


def test_row_that_refers_to_another_one_is_deleted_under_the_old_key_and_added_under_the_new() -> None:
    results = of(("one", "A", "a"), ("one", "C", "c"), ("many", "b", "A,1"), ("many", "b", "C,2"))

    assert results[0] == (("A", "b"), "a+A,1")
    assert sorted(results[1:], key=str) == [(("A", "b"), None), (("C", "b"), "c+C,2")]


def test_old_row_is_not_deleted_first_where_its_reference_stays() -> None:
    builder = StreamsBuilder()
    joined(builder, name="join")

    def use(run: OneToManyRun) -> list[tuple[bytes | None, bytes | None]]:
        run.put("many", "b", "A,1")
        run.put("many", "b", "A,2")
        return [(r.key, r.value) for r in run.driver.take_produced() if r.topic == "app-join-repartition"]

    key = b"\0\0\0\1Ab"
    assert run(builder, use) == [(key, b"A,1"), (key, b"A,2")]


def test_row_without_reference_is_dropped_and_counted_once() -> None:
    builder = StreamsBuilder()
    joined(builder, name="join").to_stream().to("out", Produced(key_serde=COMBINED))

    def use(run: OneToManyRun) -> float:
        run.put("one", "A", "a")
        run.put("many", "b", "A,1")
        run.put("many", "b", ",2")
        run.put("many", "b", ",3")
        run.put("many", "b", None)
        assert run.out() == [(("A", "b"), "a+A,1"), (("A", "b"), None)]
        return sum(value.value for name, value in run.driver.metrics().items() if name.name == "dropped-records-total")

    assert run(builder, use) == 2


def test_result_has_the_larger_timestamp_and_the_headers_of_what_changed() -> None:
    builder = StreamsBuilder()
    joined(builder).to_stream().to("out", Produced(key_serde=COMBINED))

    def use(run: OneToManyRun) -> Any:
        run.put("one", "A", "a", 50, (("from", b"one"),))
        run.put("many", "b", "A,1", 10, (("from", b"many"),))
        run.put("one", "A", "a2", 5, (("from", b"one"),))
        run.put("many", "b", "A,2", 60, (("from", b"many"),))
        run.put("many", "b", None, 70)
        records = run.driver.create_output_topic("out", COMBINED, Serdes.string()).read_records()
        return [(record.value, record.timestamp, record.headers) for record in records]

    assert run(builder, use) == [
        ("a+A,1", 50, (("from", b"many"),)),
        ("a2+A,1", 10, (("from", b"one"),)),
        ("a2+A,2", 60, (("from", b"many"),)),
        (None, 70, ()),
    ]


def test_deletion_of_a_row_that_is_not_there_gives_nothing() -> None:
    assert of(("one", "A", None), ("many", "b", None), ("one", "A", "a"), ("one", "C", None)) == []


def test_join_of_a_table_with_itself() -> None:
    builder = StreamsBuilder()
    people = table_of(builder, "people")
    chiefs = people.one_to_many_join(people, both, key_extractor=first_part)
    chiefs.to_stream().to("out", Produced(key_serde=COMBINED))

    def use(run: OneToManyRun) -> Any:
        for key, value in (("ann", "ann,1"), ("bob", "ann,2"), ("ann", "ann,3")):
            run.put("people", key, value)
        return dict(run.out())

    assert run(builder, use, 4) == {("ann", "ann"): "ann,3+ann,3", ("ann", "bob"): "ann,3+ann,2"}


# Old values and what is made of them.


def test_totals_of_a_result_are_right_under_retraction() -> None:
    builder = StreamsBuilder()
    table = joined(builder)
    grouped = table.group_by(lambda key, value: (key.prefix, value), Grouped(key_serde=Serdes.string()))
    grouped.count().map_values(str).to_stream().to("out")

    def use(run: OneToManyRun) -> Any:
        for topic, key, value in (
            ("one", "A", "a"),
            ("one", "C", "c"),
            ("many", "b1", "A,1"),
            ("many", "b2", "A,2"),
            ("many", "b3", "C,3"),
            ("one", "A", "a2"),
            ("many", "b1", "C,4"),
            ("many", "b3", None),
            ("one", "C", "c2"),
            ("many", "b2", ",5"),
        ):
            run.put(topic, key, value)
        return dict(run.out(Serdes.string()))

    assert run(builder, use, 4) == {"A": "0", "C": "1"}


def test_old_values_are_not_sent_unless_asked_for() -> None:
    calls: list[tuple[str, str]] = []

    def joiner(one: str, many: str) -> str:
        calls.append((one, many))
        return both(one, many)

    builder = StreamsBuilder()
    table = table_of(builder, "one").one_to_many_join(table_of(builder, "many"), joiner, key_extractor=first_part)
    table.to_stream().to("out", Produced(key_serde=COMBINED))

    def use(run: OneToManyRun) -> None:
        run.put("one", "A", "a")
        run.put("many", "b", "A,1")
        run.put("many", "b", "A,2")
        run.put("one", "A", "a2")

    run(builder, use)

    assert calls == [("a", "A,1"), ("a", "A,2"), ("a2", "A,2")]


def test_result_without_a_store_is_read_by_the_full_key_and_its_prefix() -> None:
    builder = StreamsBuilder()
    table = joined(builder)
    others = builder.table("others", Consumed(key_serde=COMBINED, value_serde=Serdes.string()))
    table.join(others, both).to_stream().to("out", Produced(key_serde=COMBINED))

    def use(run: OneToManyRun) -> Any:
        run.put("one", "A", "a", 40)
        run.put("many", "b", "A,1", 30)
        source = run.driver.create_input_topic("others", COMBINED, Serdes.string())
        for key in (CombinedKey("A", "b"), CombinedKey("A", "x"), CombinedKey("C", "b")):
            source.pipe_input(key, "other", timestamp=5)
        records = run.driver.create_output_topic("out", COMBINED, Serdes.string()).read_records()
        return [(record.key, record.value, record.timestamp) for record in records]

    assert run(builder, use) == [(("A", "b"), "a+A,1+other", 40)]


def test_materialized_result_can_be_queried() -> None:
    builder = StreamsBuilder()
    joined(builder, materialized="joined")

    def use(run: OneToManyRun) -> Any:
        run.put("one", "A", "a")
        run.put("many", "b", "A,1")
        return run.rows_of("joined")

    assert run(builder, use) == {CombinedKey("A", "b"): "a+A,1"}


# The other styles of result keys.


def test_keys_written_by_a_serde_of_ones_own_are_so_in_topic_store_and_result() -> None:
    serde = JsonCombinedKeySerde[str, str](names=("a", "b"))
    builder = StreamsBuilder()
    joined(builder, name="join", combined_key_serde=serde).to_stream().to("out")

    def use(run: OneToManyRun) -> Any:
        run.put("one", "A", "a")
        run.put("many", "b", "A,1")
        produced = {record.topic: record.key for record in run.driver.take_produced()}
        return {topic: key for topic, key in produced.items() if "join" in topic or topic == "out"}

    key = b'{"a":"A","b":"b"}'
    assert run(builder, use, 4) == {
        "app-join-repartition": key,
        "app-join-shipped-store-changelog": key,
        "out": key,
    }


class Joined(CombinedKeySerde[str, str]):
    """Keys ``prefix/suffix``; the partial key ends where ``end`` says."""

    def __init__(self, end: str) -> None:
        super().__init__(Serdes.string(), Serdes.string())
        object.__setattr__(self, "end", end)

    def encoder(self, topic: str) -> Any:
        return lambda data, headers: None if data is None else f"{data[0]}/{data[1]}".encode()

    def decoder(self, topic: str) -> Any:
        return lambda data, headers: None if data is None else CombinedKey(*data.decode().split("/"))

    def partial_key_serializer(self) -> Any:
        end = self.end  # type: ignore[attr-defined]
        return lambda prefix: f"{prefix}{end}".encode()


def with_serde(serde: Any) -> Any:
    builder = StreamsBuilder()
    joined(builder, combined_key_serde=serde).to_stream().to("out")

    def use(run: OneToManyRun) -> Any:
        run.put("many", "b", "A12,1")
        run.put("one", "A12", "a")
        run.put("one", "A1", "c")
        return run.out(serde)

    return run(builder, use, 1)


def test_serde_whose_partial_keys_are_true_prefixes() -> None:
    assert with_serde(Joined("/")) == [(("A12", "b"), "a+A12,1")]


def test_serde_whose_partial_key_is_no_prefix_is_found_with_the_first_row() -> None:
    message = (
        r"writes CombinedKey\(prefix='A12', suffix='b'\) .* as b'A12/b', and its partial key as b'A12!', which is no"
    )

    with pytest.raises(StreamsError, match=message):
        with_serde(Joined("!"))


def test_serde_whose_partial_key_is_also_the_prefix_of_other_keys_is_found_by_the_scan() -> None:
    message = (
        r"the bytes of the partial key 'A1' are also what the key CombinedKey\(prefix='A12', suffix='b'\) starts with"
    )

    with pytest.raises(ProcessingError, match=message):
        with_serde(Joined(""))


def test_keys_are_mapped_where_results_leave_the_join_and_back_where_they_are_read() -> None:
    builder = StreamsBuilder()
    table = joined(
        builder,
        output_key_combiner=lambda key: f"{key.prefix}-{key.suffix}",
        output_key_splitter=lambda text: CombinedKey(*text.split("-")),
    )
    table.join(builder.table("others"), both).to_stream().to("out")

    def use(run: OneToManyRun) -> Any:
        run.put("others", "A-b", "x")
        run.put("one", "A", "a")
        run.put("many", "b", "A,1")
        run.put("others", "A-b", "y")
        return run.out(Serdes.string())

    assert run(builder, use, 1) == [("A-b", "a+A,1+x"), ("A-b", "a+A,1+y")]


class PathSerde(Serde[tuple[str, ...]]):
    """Paths; one of a single step is written with the slash behind it, as all that lies below begins."""

    def serialize(self, topic: str, data: Any, headers: Any = None) -> Any:
        return None if data is None else "/".join(data).encode() + b"/" * (len(data) == 1)

    def deserialize(self, topic: str, data: Any, headers: Any = None) -> Any:
        return None if data is None else tuple(data.decode().split("/"))


def test_faked_keys_are_the_users_throughout() -> None:
    builder = StreamsBuilder()
    one = table_of(builder, "one")
    many = builder.table("many", Consumed(key_serde=PathSerde(), value_serde=Serdes.string()))
    table = one.one_to_many_join(
        many,
        both,
        key_extractor=first_part,
        join_prefix_faker=lambda key: (key,),
        left_key_extractor=lambda path: path[0],
    )
    table.to_stream().to("out")

    def use(run: OneToManyRun) -> Any:
        source = run.driver.create_input_topic("many", PathSerde(), Serdes.string())
        source.pipe_input(("A", "b"), "A,1")
        source.pipe_input(("A2", "b"), "A2,2")
        run.put("one", "A", "a")
        run.put("one", "A", "a2")
        source.pipe_input(("A", "b"), None)
        return run.out(PathSerde())

    assert run(builder, use, 4) == [(("A", "b"), "a+A,1"), (("A", "b"), "a2+A,1"), (("A", "b"), None)]


def test_faked_keys_can_be_made_of_both_keys() -> None:
    builder = StreamsBuilder()
    table = joined(
        builder,
        join_prefix_faker=lambda key: (key,),
        left_key_extractor=lambda path: path[0],
        output_key_combiner=tuple,
        combined_key_serde=PathSerde(),
        materialized="joined",
    )
    table.to_stream().to("out", Produced(key_serde=PathSerde()))

    def use(run: OneToManyRun) -> Any:
        run.put("one", "A", "a")
        run.put("many", "b", "A,1")
        return run.out(PathSerde()), run.rows_of("joined")

    assert run(builder, use, 1) == ([(("A", "b"), "a+A,1")], {("A", "b"): "a+A,1"})


def test_faked_key_without_the_key_of_the_one_is_refused_with_the_row() -> None:
    builder = StreamsBuilder()
    joined(builder, join_prefix_faker=lambda key: key, left_key_extractor=lambda key: key[:1])

    def use(run: OneToManyRun) -> None:
        run.put("many", "b", "A,1")

    message = r"gave 'b' for the key 'b' of a row that refers to 'A'; .* give output_key_combiner to make a key of both"
    with pytest.raises(ProcessingError, match=message):
        run(builder, use)


# What is named and created.


def test_names_follow_kafka_streams() -> None:
    builder = StreamsBuilder()
    joined(builder)

    assert str(builder.build().describe()) == DESCRIPTION


DESCRIPTION = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000001 (topics: [one])
      --> KTABLE-SOURCE-0000000002
    Source: KTABLE-SOURCE-0000000008 (topics: [KTABLE-ONETOMANY-SHIP-0000000006-repartition])
      --> KTABLE-ONETOMANY-KEEP-0000000010
    Processor: KTABLE-ONETOMANY-KEEP-0000000010 (stores: [KTABLE-ONETOMANY-SHIPPED-STATE-STORE-0000000009])
      --> KTABLE-ONETOMANY-JOINSHIPPED-0000000011
      <-- KTABLE-SOURCE-0000000008
    Processor: KTABLE-SOURCE-0000000002 (stores: [one-STATE-STORE-0000000000])
      --> KTABLE-ONETOMANY-JOINREFERRED-0000000012
      <-- KSTREAM-SOURCE-0000000001
    Processor: KTABLE-ONETOMANY-JOINREFERRED-0000000012 (stores: [KTABLE-ONETOMANY-SHIPPED-STATE-STORE-0000000009, one-STATE-STORE-0000000000])
      --> KTABLE-ONETOMANY-MERGE-0000000013
      <-- KTABLE-SOURCE-0000000002
    Processor: KTABLE-ONETOMANY-JOINSHIPPED-0000000011 (stores: [KTABLE-ONETOMANY-SHIPPED-STATE-STORE-0000000009, one-STATE-STORE-0000000000])
      --> KTABLE-ONETOMANY-MERGE-0000000013
      <-- KTABLE-ONETOMANY-KEEP-0000000010
    Processor: KTABLE-ONETOMANY-MERGE-0000000013 (stores: [])
      --> none
      <-- KTABLE-ONETOMANY-JOINSHIPPED-0000000011, KTABLE-ONETOMANY-JOINREFERRED-0000000012

  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000004 (topics: [many])
      --> KTABLE-SOURCE-0000000005
    Processor: KTABLE-SOURCE-0000000005 (stores: [many-STATE-STORE-0000000003])
      --> KTABLE-ONETOMANY-SHIP-0000000006
      <-- KSTREAM-SOURCE-0000000004
    Processor: KTABLE-ONETOMANY-SHIP-0000000006 (stores: [])
      --> KTABLE-SINK-0000000007
      <-- KTABLE-SOURCE-0000000005
    Sink: KTABLE-SINK-0000000007 (topic: KTABLE-ONETOMANY-SHIP-0000000006-repartition)
      <-- KTABLE-ONETOMANY-SHIP-0000000006

"""  # noqa: E501


def test_name_is_that_of_all_nodes_stores_and_topics() -> None:
    builder = StreamsBuilder()
    joined(builder, name="orders-of-customers", materialized="joined")
    plan = builder.build({"ensure.explicit.internal.resource.naming": False}).plan(CONFIG)

    named = {name for name in plan.whole.nodes if name.startswith("orders-of-customers")}
    assert named == {
        "orders-of-customers",
        "orders-of-customers-join-referred",
        "orders-of-customers-join-shipped",
        "orders-of-customers-keep",
        "orders-of-customers-ship",
        "orders-of-customers-sink",
        "orders-of-customers-source",
    }
    assert "app-orders-of-customers-repartition" in plan.whole.repartition_topics
    assert {"orders-of-customers-shipped-store", "joined"} <= set(plan.whole.stores)


def test_generated_names_are_told_where_explicit_ones_are_wanted() -> None:
    builder = StreamsBuilder({"ensure.explicit.internal.resource.naming": True})
    one: KTable[str, str] = builder.table("one", materialized="ones")
    many: KTable[str, str] = builder.table("many", materialized="manys")
    one.one_to_many_join(many, both, key_extractor=first_part)

    with pytest.raises(TopologyError, match="KTABLE-ONETOMANY-SHIP-0000000004-repartition"):
        builder.build()


def test_repartitioned_rows_are_partitioned_by_the_key_of_the_one_alone() -> None:
    builder = StreamsBuilder()
    joined(builder, name="join")

    def use(run: OneToManyRun) -> Any:
        for number in range(40):
            run.put("many", f"b{number}", f"A{number % 5},x")
        found: dict[str, set[int | None]] = {}
        for record in run.driver.take_produced():
            if record.topic == "app-join-repartition":
                found.setdefault(_combined(record.key).prefix, set()).add(record.partition)
        return [len(partitions) for partitions in found.values()], set().union(*found.values())

    each, together = run(builder, use, 4)

    assert each == [1] * 5
    assert len(together) > 1


def test_rows_may_refer_to_rows_of_such_a_join_through_more_partitions() -> None:
    """The result lies where the key of the one lies, not where its own keys would."""
    builder = StreamsBuilder()
    orders = joined(builder).filter(lambda key, value: True)
    items = table_of(builder, "items")
    lines = orders.one_to_many_join(
        items, both, key_extractor=lambda value: CombinedKey(*value.split(",")[0].split("/"))
    )
    key_serde = CombinedKeySerde(COMBINED, Serdes.string())
    lines.to_stream().to("out", Produced(key_serde=key_serde))

    def use(run: OneToManyRun) -> Any:
        for number in range(12):
            run.put("one", f"A{number}", "a")
            run.put("many", f"b{number}", f"A{number},1")
            run.put("items", f"i{number}", f"A{number}/b{number},2")
        return run.out(key_serde)

    assert run(builder, use, 4) == [(((f"A{n}", f"b{n}"), f"i{n}"), f"a+A{n},1+A{n}/b{n},2") for n in range(12)]


# What goes wrong.


def raising(value: str) -> str | None:
    if "poison" in value:
        raise ValueError("no key in this")
    return first_part(value)


def test_extractor_that_raises_stops_the_task_and_names_the_record() -> None:
    builder = StreamsBuilder()
    joined(builder, name="join", key_extractor=raising)

    def use(run: OneToManyRun) -> None:
        run.put("many", "b", "poison")

    with pytest.raises(ProcessingError, match=r"no key in this.*join-ship failed at record many-0 offset 0 .*key='b'"):
        run(builder, use)


def test_row_whose_extractor_raises_is_out_of_the_join_until_it_is_corrected() -> None:
    builder = StreamsBuilder()
    joined(builder, key_extractor=raising).to_stream().to("out", Produced(key_serde=COMBINED))

    def use(run: OneToManyRun) -> Any:
        run.put("one", "A", "a")
        run.put("one", "C", "c")
        for value in ("A,1", "A,poison", "C,2", "C,3"):
            run.put("many", "b", value)
        return run.out()

    go_on = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler}
    assert run(builder, use, 1, **go_on) == [
        (("A", "b"), "a+A,1"),
        (("A", "b"), None),
        (("C", "b"), "c+C,2"),
        (("C", "b"), "c+C,3"),
    ]


def test_row_whose_reference_cannot_be_written_is_out_of_the_join_until_it_is_corrected() -> None:
    builder = StreamsBuilder()
    table = joined(builder, key_extractor=lambda value: 5 if "5" in value else first_part(value))
    table.to_stream().to("out", Produced(key_serde=COMBINED))

    def use(run: OneToManyRun) -> Any:
        run.put("one", "A", "a")
        for value in ("A,1", "A,5", "A,2"):
            run.put("many", "b", value)
        return run.out()

    go_on = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler}
    assert run(builder, use, 1, **go_on) == [(("A", "b"), "a+A,1"), (("A", "b"), None), (("A", "b"), "a+A,2")]


def test_reference_of_another_type_stops_the_task_with_both_keys() -> None:
    builder = StreamsBuilder()
    joined(builder, name="join", key_extractor=lambda value: 5)

    def use(run: OneToManyRun) -> None:
        run.put("many", "b", "x")

    message = r"join-sink failed at record many-0 offset 0 .*cannot write 5 of type int .*prefix=5, suffix='b'"
    with pytest.raises(ProcessingError, match=message):
        run(builder, use)


def test_joiner_that_raises_for_one_row_leaves_the_others() -> None:
    def joiner(one: str, many: str) -> str:
        if "bad" in many:
            raise ValueError("bad")
        return both(one, many)

    builder = StreamsBuilder()
    table = table_of(builder, "one").one_to_many_join(table_of(builder, "many"), joiner, key_extractor=first_part)
    table.to_stream().to("out", Produced(key_serde=COMBINED))

    def use(run: OneToManyRun) -> Any:
        for key, value in (("b1", "A,1"), ("b2", "A,bad"), ("b3", "A,3")):
            run.put("many", key, value)
        run.put("one", "A", "a")
        return run.out()

    go_on = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler}
    assert run(builder, use, 1, **go_on) == [(("A", "b1"), "a+A,1"), (("A", "b3"), "a+A,3")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output_key_combiner": str}, "output_key_combiner and output_key_splitter belong together"),
        ({"output_key_splitter": str}, "output_key_combiner and output_key_splitter belong together"),
        ({"join_prefix_faker": str}, "join_prefix_faker and left_key_extractor belong together"),
        ({"left_key_extractor": str}, "join_prefix_faker and left_key_extractor belong together"),
        (
            {"join_prefix_faker": str, "left_key_extractor": str, "output_key_splitter": str},
            "output_key_splitter was given beside join_prefix_faker; leave it out, left_key_extractor replaces it",
        ),
        (
            {"combined_key_serde": Serdes.string()},
            r"combined_key_serde is StringSerde\(.*\); expected a serde with partial_key_serializer\(\), such as",
        ),
    ],
)
def test_styles_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        joined(StreamsBuilder(), **options)


def test_join_with_something_else_than_a_table_is_refused() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TypeError, match="expected a KTable"):
        builder.table("one").one_to_many_join(builder.stream("many"), both, key_extractor=first_part)  # type: ignore[call-overload]


def test_stored_result_takes_the_key_serde_that_it_is_given() -> None:
    builder = StreamsBuilder()
    kept = Materialized[Any, Any]("joined", key_serde=JsonCombinedKeySerde())
    joined(builder, materialized=kept)

    def use(run: OneToManyRun) -> Any:
        run.put("one", "A", "a")
        run.put("many", "b", "A,1")
        return [row[0] for row in run.driver.raw_store("joined")]

    assert run(builder, use) == [b'{"prefix":"A","suffix":"b"}']


class Shouting(Serde[str]):
    """Reads keys in capitals, and writes them so: to other partitions than they came from."""

    def serialize(self, topic: str, data: Any, headers: Any = None) -> Any:
        return None if data is None else data.encode()

    def deserialize(self, topic: str, data: Any, headers: Any = None) -> Any:
        return None if data is None else data.decode().upper()


def test_rows_of_the_one_that_lie_elsewhere_are_warned_of_once_a_task(caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder()
    one = builder.table("one", Consumed(key_serde=Shouting(), value_serde=Serdes.string()))
    one.one_to_many_join(builder.table("many"), both, key_extractor=first_part, name="join")

    def use(run: OneToManyRun) -> None:
        for key in "abcdefghijklmnop":
            run.put("one", key, "x")

    run(builder, use, 2)

    assert caplog.text.count("so it joins nothing") == 2
    assert "join-join-referred: the row 'E' lies in partition" in caplog.text
