"""Foreign-key joins as a user writes them: what comes out, what is named, kept and refused."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    KTable,
    LogAndContinueProcessingExceptionHandler,
    Materialized,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    TableJoined,
)
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.names import looks_internal
from pykstreams.errors import ProcessingError, TopologyError
from pykstreams.serdes import CombinedKey, Instruction, SubscriptionWrapper, SubscriptionWrapperSerde
from pykstreams.testing import TopologyTestDriver

TEXT = Serdes.string()
CONFIG: dict[str, object] = {
    "application.id": "app",
    "default.key.serde": TEXT,
    "default.value.serde": TEXT,
    "statestore.cache.max.bytes": 0,
}
LEFT_TABLE, RIGHT_TABLE = "orders", "customers"


def both(order: str | None, customer: str | None) -> str:
    return f"{order}+{customer}"


def customer_of(order: str) -> str | None:
    return order.partition("|")[0] or None


def joined(op: str = "join", **options: Any) -> StreamsBuilder:
    """A builder with orders joined with customers; ``options`` go to the join."""
    builder = StreamsBuilder()
    orders: KTable[str, str] = builder.table(LEFT_TABLE)
    customers: KTable[str, str] = builder.table(RIGHT_TABLE)
    options.setdefault("foreign_key_extractor", customer_of)
    getattr(orders, op)(customers, both, **options).to_stream().to("out")
    return builder


def pipe(driver: TopologyTestDriver, *records: tuple[str, str, str | None]) -> list[tuple[Any, Any]]:
    """Pipes (topic, key, value), one a millisecond; gives what topic ``out`` gets of it."""
    for time, (topic, key, value) in enumerate(records):
        driver.create_input_topic(topic, TEXT, TEXT).pipe_input(key, value, timestamp=time)
    out = driver.create_output_topic("out", TEXT, TEXT)
    return [(record.key, record.value) for record in out.read_records()]


def run(builder: StreamsBuilder, *records: tuple[str, str, str | None], **more: Any) -> list[tuple[Any, Any]]:
    partitions = more.pop("partitions", 1)
    with TopologyTestDriver(builder.build(), {**CONFIG, **more}, partitions=partitions) as driver:
        return pipe(driver, *records)


def order(key: str, value: str | None) -> tuple[str, str, str | None]:
    return LEFT_TABLE, key, value


def customer(key: str, value: str | None) -> tuple[str, str, str | None]:
    return RIGHT_TABLE, key, value


# ------------------------------------------------------------ results


def test_rows_are_joined_when_either_side_comes() -> None:
    rows = run(joined(), order("1", "ann|7"), customer("ann", "Ann"), order("2", "ann|8"))

    assert rows == [("1", "ann|7+Ann"), ("2", "ann|8+Ann")]


def test_a_right_row_fans_out_to_all_that_refer_to_it_and_its_deletion_deletes_them() -> None:
    rows = run(
        joined(),
        order("1", "ann|7"),
        order("2", "ann|8"),
        order("3", "bob|9"),
        customer("ann", "Ann"),
        customer("ann", None),
    )

    assert rows == [("1", "ann|7+Ann"), ("2", "ann|8+Ann"), ("1", None), ("2", None)]


def test_a_new_foreign_key_is_joined_and_the_old_one_forgotten() -> None:
    rows = run(
        joined(),
        customer("ann", "Ann"),
        customer("bob", "Bob"),
        order("1", "ann|7"),
        order("1", "bob|7"),
        customer("ann", "Anna"),
    )

    assert rows == [("1", "ann|7+Ann"), ("1", "bob|7+Bob")]


def test_left_join_gives_rows_without_partner_and_without_foreign_key() -> None:
    rows = run(joined("left_join"), order("1", "ann|7"), order("2", "|8"), order("2", None), customer("ann", "Ann"))

    assert rows == [("1", "ann|7+None"), ("2", "|8+None"), ("2", None), ("1", "ann|7+Ann")]


def test_extractor_may_see_the_key_of_the_row() -> None:
    def by_key(key: str, value: str) -> str:
        return key

    builder = joined(foreign_key_extractor=by_key, extractor_with_key=True)

    assert run(builder, customer("ann", "Ann"), order("ann", "x")) == [("ann", "x+Ann")]


def test_a_result_without_store_can_be_joined_on() -> None:
    builder = StreamsBuilder()
    orders: KTable[str, str] = builder.table(LEFT_TABLE)
    customers: KTable[str, str] = builder.table(RIGHT_TABLE)
    regions: KTable[str, str] = builder.table("regions")
    placed = orders.join(customers, both, foreign_key_extractor=customer_of)
    placed.join(regions, both, foreign_key_extractor=lambda row: row.rpartition("+")[2]).to_stream().to("out")

    rows = run(builder, ("regions", "north", "N"), customer("ann", "north"), order("1", "ann|7"))

    assert rows == [("1", "ann|7+north+N")]


def test_tasks_of_several_partitions_answer_each_other() -> None:
    orders = [order(str(number), f"{'abcdef'[number % 6]}|{number}") for number in range(30)]
    customers = [customer(letter, letter.upper()) for letter in "abcdef"]

    rows = run(joined(), *orders, *customers, partitions=5)

    assert dict(rows) == {str(n): f"{'abcdef'[n % 6]}|{n}+{'ABCDEF'[n % 6]}" for n in range(30)}


# ------------------------------------------------------------ names and stores


@pytest.mark.parametrize("options", [{"name": "placed"}, {"table_joined": TableJoined(name="placed")}])
def test_a_name_is_that_of_topics_store_and_steps(options: dict[str, Any]) -> None:
    topology = joined(**options).build()

    plan = topology.plan(StreamsConfig(CONFIG))
    own = {name for part in plan.subtopologies for name in part.nodes if name.startswith("placed")}
    assert own == {
        "placed-foreign-join-subscription",
        "placed-result",
        "placed-subscription-join-foreign",
        "placed-subscription-receive",
        "placed-subscription-registration-processor",
        "placed-subscription-registration-sink",
        "placed-subscription-registration-source",
        "placed-subscription-response-resolver",
        "placed-subscription-response-sink",
        "placed-subscription-response-source",
    }
    assert {topic.name for topic in plan.internal_topics} >= {
        "app-placed-subscription-registration-topic",
        "app-placed-subscription-response-topic",
        "app-placed-subscription-store-changelog",
    }


@pytest.mark.parametrize("name", ["placed", None])
def test_all_of_its_topics_are_named_as_internal_ones(name: str | None) -> None:
    plan = joined(name=name).build().plan(StreamsConfig(CONFIG))

    topics = [topic.name for topic in plan.internal_topics]
    assert len(topics) == 5
    assert [topic for topic in topics if not looks_internal(topic)] == []


def test_subscriptions_are_kept_by_foreign_and_primary_key() -> None:
    with TopologyTestDriver(joined(name="placed").build(), CONFIG) as driver:
        pipe(driver, order("1", "ann|7"))
        ((key, row),) = driver.get_state_store("placed-subscription-store").all()

    assert key == CombinedKey("ann", "1")
    assert row.value.instruction is Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
    assert row.value.primary_key == "1"
    assert row.timestamp == 0


def test_a_subscription_of_version_0_is_answered_where_its_key_belongs() -> None:
    """As one is that Kafka Streams before 3.4 has left in the topic."""
    topic = "app-placed-subscription-registration-topic"
    with TopologyTestDriver(joined(name="placed").build(), CONFIG) as driver:
        old = driver.create_input_topic(topic, TEXT, SubscriptionWrapperSerde(TEXT))
        pipe(driver, customer("ann", "Ann"), order("1", "ann|7"))
        digest = next(r for r in driver.take_produced() if r.topic == topic).value[2:18]  # type: ignore[index]
        instruction = Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
        old.pipe_input("ann", SubscriptionWrapper(digest, instruction, "1", None, version=0), timestamp=9)
        answers = [r for r in driver.take_produced() if r.topic == "app-placed-subscription-response-topic"]

    assert [(record.key, record.partition) for record in answers] == [(b"1", None)]


# ------------------------------------------------------------ bad input


def test_extractor_that_raises_fails_with_the_record_named() -> None:
    def fails(value: str) -> str:
        raise KeyError("customer")

    with pytest.raises(ProcessingError, match=r"KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-\d+.*orders-0.*0") as raised:
        run(joined(foreign_key_extractor=fails), order("1", "ann|7"))

    assert isinstance(raised.value.__cause__, KeyError)


def test_processing_handler_may_go_on_without_a_row_whose_extractor_raises() -> None:
    def fails(value: str) -> str:
        return {"good": "ann"}[value]

    rows = run(
        joined(foreign_key_extractor=fails),
        customer("ann", "Ann"),
        order("1", "bad"),
        order("2", "good"),
        **{"processing.exception.handler": LogAndContinueProcessingExceptionHandler()},
    )

    assert rows == [("2", "good+Ann")]


def test_null_foreign_keys_are_dropped_and_counted_by_an_inner_join() -> None:
    with TopologyTestDriver(joined().build(), CONFIG) as driver:
        pipe(driver, order("1", "|7"))
        dropped = [m.value for name, m in driver.metrics().items() if name.name == "dropped-records-total"]

    assert dropped == [1]


def test_partitioner_out_of_range_is_refused_with_topic_and_count() -> None:
    builder = joined(table_joined=TableJoined(name="placed", other_partitioner=lambda topic, key, value, count: count))
    wanted = "chose partition 3 of topic 'app-placed-subscription-registration-topic'; expected a number from 0 to 2"

    with pytest.raises(ProcessingError) as raised:
        run(builder, order("1", "ann|7"), partitions=3)

    assert isinstance(raised.value.__cause__, ValueError)
    assert wanted in str(raised.value.__cause__)


def test_partitioner_of_several_partitions_is_refused() -> None:
    builder = joined(table_joined=TableJoined(name="placed", partitioner=lambda topic, key, value, count: [0, 1]))

    with pytest.raises(ProcessingError) as raised:
        run(builder, customer("ann", "Ann"), order("1", "ann|7"), partitions=3)

    assert "chose the partitions [0, 1] of topic 'app-placed-subscription-response-topic' for key '1'; in a" in str(
        raised.value.__cause__
    )


def test_partitioners_see_keys_and_no_values() -> None:
    seen = []

    def first(topic: str, key: str, value: object, count: int) -> int:
        seen.append((topic, key, value, count))
        return 0

    options = TableJoined(name="placed", partitioner=first, other_partitioner=first)
    run(joined(table_joined=options), order("1", "ann|7"), customer("ann", "Ann"))

    assert seen == [
        ("app-placed-subscription-registration-topic", "ann", None, 1),
        ("app-placed-subscription-response-topic", "1", None, 1),
    ]


def test_right_row_in_another_partition_than_subscriptions_to_it_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def elsewhere(topic: str, key: str, value: object, count: int) -> int:
        return (partition_for_key(key.encode(), count) + 1) % count

    builder = joined(table_joined=TableJoined(name="placed", other_partitioner=elsewhere))
    with caplog.at_level(logging.WARNING, "pykstreams.processors.foreign_keys.foreign_table_join"):
        run(builder, customer("x", "X"), customer("x", "X2"), partitions=3)

    (said,) = (record.getMessage() for record in caplog.records if record.name.endswith("foreign_table_join"))
    assert said == (
        "placed-foreign-join-subscription: the row 'x' of the right table is in partition 1 of topic 'customers', but "
        "left rows subscribe to it in partition 2 of topic 'app-placed-subscription-registration-topic', so it joins "
        "nothing; set TableJoined(other_partitioner=...) to what chooses the partitions of 'customers', or let that "
        "topic be written by Kafka's default partitioner"
    )


def test_right_rows_where_subscriptions_arrive_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pykstreams.processors.foreign_keys.foreign_table_join"):
        run(joined(), *(customer(letter, "X") for letter in "abcdefgh"), partitions=3)

    assert [record for record in caplog.records if record.name.endswith("foreign_table_join")] == []


def numbered(read_by: Any, kept_by: Any, **options: Any) -> StreamsBuilder:
    """Customers whose keys are read by one serde and, after a filter, known to have another."""
    builder = StreamsBuilder()
    orders: KTable[str, str] = builder.table(LEFT_TABLE)
    rows: KTable[int, str] = builder.table(RIGHT_TABLE, Consumed(key_serde=read_by, value_serde=TEXT))
    kept = rows.filter(lambda key, value: True, materialized=Materialized("kept", key_serde=kept_by))
    orders.join(kept, both, foreign_key_extractor=len, **options).to_stream().to("out")
    return builder


def test_unequal_key_serdes_of_the_right_table_are_refused_when_the_join_is_made() -> None:
    with pytest.raises(TopologyError) as raised:
        numbered(Serdes.integer(), Serdes.long())

    assert str(raised.value) == (
        "Invalid topology: foreign-key join with KTABLE-FILTER-0000000006: keys of its topic 'customers' are read by "
        "IntegerSerde(), but foreign keys would be written by LongSerde(), the key serde of the table, so the two "
        "would not meet; give both the same key serde (Consumed, Materialized)"
    )


class Decimal:
    """A serde of the user's own: a number as text, padded or not."""

    def __init__(self, width: int) -> None:
        self.width = width

    @property
    def serializer(self) -> Decimal:
        return self

    deserializer = serializer

    def serialize(self, topic: str, data: int | None, headers: object = None) -> bytes | None:
        return None if data is None else b"%0*d" % (self.width, data)

    def deserialize(self, topic: str, data: bytes | None, headers: object = None) -> int | None:
        return None if data is None else int(data)


def test_unequal_encodings_of_a_foreign_key_are_shown_at_the_first_right_row() -> None:
    builder = numbered(Decimal(1), Decimal(3), name="placed")

    with pytest.raises(ProcessingError) as raised:
        run(builder, customer("5", "Five"))

    assert str(raised.value.__cause__) == (
        "placed-foreign-join-subscription: the key 5 of a row of the right table is written as b'5' in topic "
        "'customers' (partition 0, offset 0), and as b'005' where left rows subscribe to it (topic "
        "'placed-subscription-registration-topic'), so the two would not meet; give the right table the key serde by "
        "which its topic is written, or set TableJoined(other_partitioner=...) to what chooses the partitions of its "
        "topic"
    )


class Quoted:
    """A serde of the user's own: text, which another one writes without quotes."""

    @property
    def serializer(self) -> Quoted:
        return self

    deserializer = serializer

    def serialize(self, topic: str, data: str | None, headers: object = None) -> bytes | None:
        return None if data is None else f'"{data}"'.encode()

    def deserialize(self, topic: str, data: bytes | None, headers: object = None) -> str | None:
        return None if data is None else data.decode(errors="replace").strip('"')


def pipe_right_key(driver: TopologyTestDriver, key: bytes) -> None:
    driver.create_input_topic(RIGHT_TABLE, Serdes.bytes(), TEXT).pipe_input(key, "value")


def test_a_right_row_whose_key_is_malformed_text_says_nothing_about_serdes() -> None:
    with TopologyTestDriver(joined().build(), CONFIG) as driver:
        pipe_right_key(driver, b"\xff")

        assert pipe(driver, customer("ann", "Ann"), order("1", "ann|7")) == [("1", "ann|7+Ann")]


def test_unequal_encodings_are_shown_behind_a_right_row_whose_key_is_malformed_text() -> None:
    with TopologyTestDriver(numbered(TEXT, Quoted()).build(), CONFIG) as driver:
        pipe_right_key(driver, b"\xff")

        with pytest.raises(ProcessingError, match="so the two would not meet"):
            pipe_right_key(driver, b"ann")


def test_unequal_encodings_are_let_through_where_a_partitioner_says_where_rows_are() -> None:
    options = TableJoined[Any, Any](other_partitioner=lambda topic, key, value, count: key % count)

    run(numbered(Decimal(1), Decimal(3), table_joined=options), customer("5", "Five"))


def test_a_foreign_key_that_the_serde_of_the_right_table_cannot_write_fails_at_the_first_row() -> None:
    with pytest.raises(ProcessingError, match=r"cannot write the key of a record .*expected a str.*orders-0 offset 0"):
        run(joined(foreign_key_extractor=len), order("1", "ann|7"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"foreign_key_extractor": None, "table_joined": TableJoined()},
            "table_joined is for joins on a foreign key; give foreign_key_extractor, too, or leave it out",
        ),
        (
            {"foreign_key_extractor": None, "extractor_with_key": True},
            "extractor_with_key is for joins on a foreign key; give foreign_key_extractor, too, or leave it out",
        ),
        (
            {"name": "a", "table_joined": TableJoined(name="b")},
            "a foreign-key join is named 'a' and, by table_joined, 'b'; give one of the two",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        joined(**options)


def test_an_extractor_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="foreign_key_extractor is 'customer'; expected a function"):
        joined(foreign_key_extractor="customer")
