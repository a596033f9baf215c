"""Joins with complete history as a user writes them: every older result is right when a record has come late.

The first table of records is that of KIP-914, under "Attempt 2".
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pykstreams import (
    KTable,
    Materialized,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    ValueTransformerContext,
    ValueTransformerWithKey,
)
from pykstreams.errors import TopologyError
from pykstreams.testing import TopologyTestDriver

CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "statestore.cache.max.bytes": 0,
    }
)

Result = tuple[Any, int | None]


def versioned(name: str, history: int = 100) -> Materialized[Any, Any]:
    return Materialized(Stores.persistent_versioned_key_value_store(name, history))


def both(value: Any, other: Any) -> Any:
    return None if "nothing" in (value, other) else f"{value}+{other}"


def complete(kind: str = "join", retentions: tuple[int, int, int] = (100, 100, 100)) -> StreamsBuilder:
    """The join of tables A and B, with the history retention of A, of B and of the result ``AB``."""
    builder = StreamsBuilder()
    a = builder.table("A", materialized=versioned("a", retentions[0]))
    b = builder.table("B", materialized=versioned("b", retentions[1]))
    joined = getattr(a, kind)(b, both, complete_history=True, materialized=versioned("AB", retentions[2]))
    joined.to_stream().to("out")
    return builder


def run(builder: StreamsBuilder, *records: tuple[str, Any, int]) -> list[list[Result]]:
    """What each of the records (topic, value or (key, value), timestamp) gives: (value, timestamp)."""
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        out = driver.create_output_topic("out", Serdes.string(), Serdes.string())
        results: list[list[Result]] = []
        for topic, given, time in records:
            key, value = given if isinstance(given, tuple) else ("k", given)
            driver.create_input_topic(topic, Serdes.string(), Serdes.string()).pipe_input(key, value, timestamp=time)
            results.append([(record.value, record.timestamp) for record in out.read_records()])
        return results


# What a record gives


def test_a_late_record_gives_a_result_for_each_version_of_the_other_table() -> None:
    records = [("A", "a0", 0), ("A", "a5", 5), ("B", "b2", 2), ("B", "b3", 3), ("B", "b4", 4), ("A", "a1", 1)]

    assert run(complete(), *records) == [
        [],
        [],
        [("a0+b2", 2), ("a5+b2", 5)],
        [("a0+b3", 3), ("a5+b3", 5)],
        [("a0+b4", 4), ("a5+b4", 5)],
        [("a1+b2", 2), ("a1+b3", 3), ("a1+b4", 4)],
    ]


def test_the_result_that_one_late_record_makes_wrong_is_corrected_by_the_next() -> None:
    """The records of "Attempt 1", which leaves (a0+b2, 2) behind."""
    records = [("A", "a0", 0), ("B", "b0", 0), ("A", "a4", 4), ("B", "b3", 3), ("B", "b2", 2), ("A", "a1", 1)]

    assert run(complete(), *records)[-2:] == [[("a0+b2", 2)], [("a1+b0", 1), ("a1+b2", 2), ("a1+b3", 3)]]


def test_without_late_records_results_are_those_of_any_join() -> None:
    records = [("A", "a1", 1), ("B", "b2", 2), ("A", "a3", 3), ("B", None, 4), ("A", None, 5)]

    assert run(complete(), *records) == [[], [("a1+b2", 2)], [("a3+b2", 3)], [(None, 4)], []]
    assert run(complete("left_join"), *records) == [
        [("a1+None", 1)],
        [("a1+b2", 2)],
        [("a3+b2", 3)],
        [("a3+None", 4)],
        [(None, 5)],
    ]
    assert run(complete("outer_join"), *records) == run(complete("left_join"), *records)


def test_a_result_ends_where_either_row_was_deleted() -> None:
    records = [("A", None, 8), ("B", None, 5), ("B", "b2", 2), ("A", "a1", 1), ("A", "a6", 6)]

    assert run(complete(), *records) == [[], [], [], [("a1+b2", 2), (None, 5)], []]
    assert run(complete("left_join"), *records) == [
        [],
        [],
        [],
        [("a1+None", 1), ("a1+b2", 2), ("a1+None", 5), (None, 8)],
        [("a6+None", 6)],
    ]
    assert run(complete("outer_join"), *records) == [
        [],
        [],
        [("None+b2", 2), (None, 5)],
        [("a1+None", 1), ("a1+b2", 2), ("a1+None", 5), (None, 8)],
        [("a6+None", 6)],
    ]


def test_a_late_deletion_takes_every_result_of_its_time_away() -> None:
    records = [("A", "a0", 0), ("B", "b1", 1), ("B", "b3", 3), ("B", "b5", 5), ("A", "a4", 4), ("A", None, 2)]

    assert run(complete(), *records)[-1] == [(None, 2), (None, 3)]
    assert run(complete("outer_join"), *records)[-1] == [("None+b1", 2), ("None+b3", 3)]


def test_a_record_with_the_time_of_another_takes_its_place() -> None:
    records = [("A", "a1", 1), ("B", "b2", 2), ("A", "a5", 5), ("A", "A1", 1), ("A", None, 1), ("B", "B2", 2)]

    assert run(complete(), *records)[3:] == [[("A1+b2", 2)], [(None, 2)], [("a5+B2", 5)]]


def test_a_result_that_equals_the_one_before_is_forwarded_and_a_second_deletion_is_not() -> None:
    records = [("A", "a0", 0), ("B", "b0", 0), ("A", "a0", 4), ("A", "a0", 2), ("A", None, 5), ("A", None, 7)]

    assert run(complete(), *records)[2:] == [[("a0+b0", 4)], [("a0+b0", 2)], [(None, 5)], []]


def test_none_from_the_joiner_is_no_result() -> None:
    records = [("A", "a1", 1), ("B", "b1", 1), ("B", "b5", 5), ("B", "nothing", 3)]

    assert run(complete(), *records)[-1] == [(None, 3)]


def test_a_deletion_that_the_table_has_forgotten_does_not_come_back_as_the_end_of_a_result() -> None:
    """A versioned store forgets a deletion at the very time of the only version; the result has an older one."""
    records = [("B", "b0", 0), ("A", "a5", 5), ("A", None, 5), ("A", "a1", 1)]

    assert run(complete("left_join"), *records)[-1] == [("a1+b0", 1)]
    assert run(complete("outer_join"), *records)[-1] == [("a1+b0", 1), ("a1+b0", 5)]


def test_a_record_without_key_is_dropped() -> None:
    assert run(complete(), ("A", (None, "a1"), 1), ("B", (None, "b1"), 1)) == [[], []]


# What lies before the history


def test_what_the_input_does_not_take_changes_nothing() -> None:
    records = [("A", "a200", 200), ("B", "b0", 0), ("A", "a99", 99), ("A", "a100", 100)]

    assert run(complete(), *records) == [[], [("a200+b0", 200)], [], [("a100+b0", 100)]]


def test_a_result_begins_with_the_oldest_time_that_its_store_keeps() -> None:
    records = [
        ("A", "a0", 0),
        ("B", ("other", "b200"), 200),
        ("A", ("other", "a0"), 0),
        ("B", "b0", 0),
        ("B", "b1", 150),
    ]
    kept = complete(retentions=(500, 500, 100))

    assert run(kept, *records) == [[], [], [("a0+b200", 200)], [("a0+b0", 100)], [("a0+b1", 150)]]


def test_a_result_begins_where_the_other_table_is_known(caplog: pytest.LogCaptureFixture) -> None:
    records = [
        ("B", "b0", 0),
        ("B", "b50", 50),
        ("B", "b150", 150),
        ("B", ("other", "b170"), 170),
        ("A", "a75", 75),
        ("A", "a10", 10),
        ("A", "a5", 5),
    ]

    with caplog.at_level(logging.WARNING, logger="pykstreams.runtime.tasks.dropped"):
        results = run(complete(retentions=(500, 100, 500)), *records)
    assert results[4:] == [[("a75+b50", 75), ("a75+b150", 150)], [("a10+b50", 50)], []]
    assert (
        "KTABLE-JOINTHIS-0000000005 dropped a record: the change of a joined row was replaced before all times that "
        "the joined table keeps, or the other table can be read at; give their stores a longer history retention if "
        "such changes matter; task 0_0, A-0@2"
    ) in caplog.messages


# What reads the result


def test_the_result_answers_as_of_any_time() -> None:
    with TopologyTestDriver(complete("outer_join").build(), CONFIG) as driver:
        for topic, value, time in (("A", "a4", 4), ("B", "b2", 2), ("B", None, 6), ("A", "a1", 1), ("A", None, 8)):
            driver.create_input_topic(topic, Serdes.string(), Serdes.string()).pipe_input("k", value, timestamp=time)
        store = driver.get_versioned_key_value_store("AB")
        assert store is not None

        assert [None if (found := store.get("k", time)) is None else found.value for time in range(9)] == [
            None,
            "a1+None",
            "a1+b2",
            "a1+b2",
            "a4+b2",
            "a4+b2",
            "a4+None",
            "a4+None",
            None,
        ]


def test_groups_and_other_joins_leave_corrections_of_older_results_out() -> None:
    builder = StreamsBuilder()
    a, b = builder.table("A", materialized=versioned("a")), builder.table("B", materialized=versioned("b"))
    result = a.join(b, both, complete_history=True, materialized=versioned("AB"))
    counts = result.group_by(lambda key, value: ("all", value)).aggregate(
        lambda: "", lambda key, value, total: f"{total}+({value})", lambda key, value, total: f"{total}-({value})"
    )
    counts.to_stream().to("out")
    records = [("A", "a0", 0), ("B", "b0", 0), ("A", "a4", 4), ("A", "a2", 2), ("B", "b3", 3)]

    assert run(builder, *records) == [
        [],
        [("+(a0+b0)", 0)],
        [("+(a0+b0)-(a0+b0)+(a4+b0)", 4)],
        [],
        [("+(a0+b0)-(a0+b0)+(a4+b0)-(a4+b0)+(a4+b3)", 4)],
    ]


def test_a_complete_join_of_a_complete_join_is_complete() -> None:
    builder = StreamsBuilder()
    tables = [builder.table(name, materialized=versioned(name.lower())) for name in "ABC"]
    ab = tables[0].join(tables[1], both, complete_history=True, materialized=versioned("AB"))
    ab.join(tables[2], both, complete_history=True, materialized=versioned("ABC")).to_stream().to("out")
    records = [("A", "a0", 0), ("B", "b0", 0), ("C", "c3", 3), ("C", "c0", 0), ("A", "a5", 5), ("B", "b2", 2)]

    assert run(builder, *records)[2:] == [
        [("a0+b0+c3", 3)],
        [("a0+b0+c0", 0)],
        [("a5+b0+c3", 5)],
        [("a0+b2+c0", 2), ("a0+b2+c3", 3), ("a5+b2+c3", 5)],
    ]


def test_computed_tables_are_joined_as_they_were() -> None:
    builder = StreamsBuilder()
    a = builder.table("A", materialized=versioned("a")).map_values(str.upper).filter(lambda key, value: value != "A3")
    b = builder.table("B", materialized=versioned("b"))
    a.join(b, both, complete_history=True, materialized=versioned("AB")).to_stream().to("out")
    records = [("A", "a1", 1), ("A", "a3", 3), ("A", "a5", 5), ("B", "b0", 0)]

    assert run(builder, *records)[-1] == [("A1+b0", 1), (None, 3), ("A5+b0", 5)]


def test_transformed_tables_are_joined_as_they_were() -> None:
    class Stamped(ValueTransformerWithKey[str, str, str]):
        def init(self, context: ValueTransformerContext) -> None:
            self._context = context

        def transform(self, key: str, value: str | None) -> str:
            return f"{value}@{self._context.timestamp}"

    builder = StreamsBuilder()
    a = builder.table("A", materialized=versioned("a")).transform_values(Stamped)
    b = builder.table("B", materialized=versioned("b"))
    a.join(b, both, complete_history=True, materialized=versioned("AB")).to_stream().to("out")
    records = [("A", "a3", 3), ("A", None, 5), ("B", "b0", 0)]

    assert run(builder, *records)[-1] == [("None@-1+b0", 0), ("a3@3+b0", 3), ("None@-1+b0", 5)]


# What is refused


def test_both_tables_must_be_versioned() -> None:
    builder = StreamsBuilder()
    a = builder.table("A", materialized=versioned("a"))
    b: KTable[Any, Any] = builder.table("B", materialized="b")
    why = (
        "join of KTABLE-SOURCE-0000000001 with KTABLE-SOURCE-0000000003 has complete_history=True, but "
        "KTABLE-SOURCE-0000000003 is not versioned: nobody could tell with what to join a late row of the other table. "
        "Keep KTABLE-SOURCE-0000000003 in a versioned store"
    )

    with pytest.raises(TopologyError, match=why):
        a.join(b, both, complete_history=True, materialized=versioned("AB"))


@pytest.mark.parametrize(
    ("materialized", "why"),
    [
        (None, "but its result is not kept: there would be no older results to correct. Give materialized="),
        ("AB", "but its result is kept in 'AB', which is not versioned: there would be no older results to correct"),
    ],
)
def test_the_result_must_be_kept_in_a_versioned_store(materialized: str | None, why: str) -> None:
    builder = StreamsBuilder()
    a, b = builder.table("A", materialized=versioned("a")), builder.table("B", materialized=versioned("b"))

    with pytest.raises(TopologyError, match=why):
        a.join(b, both, complete_history=True, materialized=materialized)


@pytest.mark.parametrize("join", ["join", "left_join", "outer_join"])
@pytest.mark.parametrize(
    "by",
    [
        {"foreign_key_extractor": lambda value: "k"},
        {"mapper": lambda key, value: "k", "selector": lambda key, other: "k"},
    ],
)
def test_joins_by_other_keys_have_no_complete_history(join: str, by: Any) -> None:
    builder = StreamsBuilder()
    a, b = builder.table("A", materialized=versioned("a")), builder.table("B", materialized=versioned("b"))

    with pytest.raises(TypeError, match="complete_history was given beside foreign_key_extractor, foreign_keys_extr"):
        getattr(a, join)(b, both, complete_history=True, materialized=versioned("AB"), **by)


def test_sides_read_both_tables_and_the_result() -> None:
    description = str(complete().build().describe())

    assert "Processor: KTABLE-JOINTHIS-0000000005 (stores: [a, AB, b])" in description
    assert "Processor: KTABLE-JOINOTHER-0000000006 (stores: [a, AB, b])" in description
    assert "Processor: KTABLE-MERGE-0000000004 (stores: [AB])" in description
