"""Non-key joins give the relational join under selected keys, and right totals, in whatever order tasks go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from pykstreams import Grouped, KStream, KTable, Materialized, Serdes, StreamsBuilder, TimeWindows, Windowed
from pykstreams.core.windows import Window
from pykstreams.serdes import TimeWindowedSerde
from tests.simulation.cluster import Sent
from tests.simulation.schedules import Join, check, final_rows, result_of, schedules
from tests.simulation.test_outer_foreign_key_joins import LEFT, PARTITIONS, RIGHT, both, collected, collection, draw

Tables = Mapping[str, Mapping[str, str]]
Selector = Callable[[Any, Any], Any]
KINDS = ["join", "left_join", "outer_join"]


def mapper(key: str, value: str) -> str | None:
    return value.partition("|")[0] or None


def pair(key: str | None, mapped: str | None) -> str:
    return f"{key}/{mapped}"


def own(key: str | None, mapped: str | None) -> str:
    """The key of this table, as in a foreign-key join; unmatched rows of the other table have theirs."""
    return f"-{mapped}" if key is None else key


def candidates(tables: Tables, kind: str, selector: Selector) -> dict[str, list[str]]:
    """The relational join: all rows that each selected key has."""
    this, other = tables.get(LEFT, {}), tables.get(RIGHT, {})
    rows: dict[str, list[str]] = {}
    for key, value in this.items():
        mapped = mapper(key, value)
        if mapped is not None and mapped in other:
            rows.setdefault(selector(key, mapped), []).append(both(value, other[mapped]))
        elif kind != "join":
            rows.setdefault(selector(key, None), []).append(both(value, None))
    if kind == "outer_join":
        for mapped in set(other) - {mapper(key, value) for key, value in this.items()}:
            rows.setdefault(selector(None, mapped), []).append(both(None, other[mapped]))
    return rows


def expected(tables: Tables, kind: str, selector: Selector) -> dict[str, str]:
    return {key: value for key, (value,) in candidates(tables, kind, selector).items()}


def joined(builder: StreamsBuilder, kind: str, selector: Selector, materialized: str | None = None) -> KTable[str, str]:
    this: KTable[str, str] = builder.table(LEFT)
    other: KTable[str, str] = builder.table(RIGHT)
    result: KTable[str, str] = getattr(this, kind)(
        other, both, mapper=mapper, selector=selector, materialized=materialized
    )
    return result


@pytest.mark.parametrize("selector", [pair, own])
@pytest.mark.parametrize("kind", KINDS)
def test_non_key_join_equals_the_relational_join(kind: str, selector: Selector) -> None:
    check(
        Join(
            lambda builder: joined(builder, kind, selector, "result"),
            PARTITIONS,
            draw,
            lambda tables: expected(tables, kind, selector),
        ),
        schedules(75),
    )


def test_result_without_a_store_is_read_from_the_results_of_the_selected_key() -> None:
    def define(builder: StreamsBuilder) -> None:
        joined(builder, "left_join", own).map_values(str.upper, materialized="result")

    check(
        Join(
            define,
            PARTITIONS,
            draw,
            lambda tables: {key: value.upper() for key, value in expected(tables, "left_join", own).items()},
        ),
        schedules(30),
    )


@pytest.mark.parametrize("selector", [pair, own])
def test_retraction_takes_exactly_what_was_added(selector: Selector) -> None:
    check(
        Join(
            lambda builder: collected(joined(builder, "outer_join", selector)),
            PARTITIONS,
            draw,
            lambda tables: collection(expected(tables, "outer_join", selector)),
        ),
        schedules(30),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_one_of_the_rows_that_select_a_key_stays_under_it(kind: str) -> None:
    """Which one was written last is for the schedule to say; a key has a row exactly as long as some row selects it."""

    def first_letter(key: str | None, mapped: str | None) -> str:
        return "other" if key is None else "ab" if key in "ab" else "cd"

    for seed in range(schedules(30)):
        join = Join(lambda builder: joined(builder, kind, first_letter, "result"), PARTITIONS, draw, lambda tables: {})
        made, _, _ = result_of(join, seed)
        rows = candidates(final_rows(draw(Random(seed))), kind, first_letter)

        assert made.keys() == rows.keys(), f"seed {seed}"
        assert all(made[key] in rows[key] for key in made), f"seed {seed}"


SIZE = 10
WINDOWS = TimeWindows(SIZE, grace=1_000_000)
WORDS = "words"


def draw_words(random: Random) -> list[Sent]:
    return [Sent(WORDS, random.choice("abc"), f"v{at}", random.randint(0, 59)) for at in range(random.randint(5, 40))]


def windows(builder: StreamsBuilder) -> KTable[Windowed[str], str]:
    words: KStream[str, str] = builder.stream(WORDS)
    grouped = words.group_by_key(Grouped(key_serde=Serdes.string(), value_serde=Serdes.string()))
    return grouped.windowed_by(WINDOWS).reduce(max, materialized=Materialized(retention=2_000_000))


def earlier(windowed: Windowed[str], value: str) -> Windowed[str] | None:
    return windowed.shift_left(SIZE) if windowed.window.start else None


def largest(sent: list[Sent]) -> dict[Windowed[str], str]:
    found: dict[Windowed[str], str] = {}
    for record in sent:
        start = record.timestamp // SIZE * SIZE
        windowed = Windowed(record.key, Window(start, start + SIZE))
        found[windowed] = max(found.get(windowed, ""), record.value)
    return found


def test_windowed_table_joined_with_itself_shifted_equals_the_relational_join() -> None:
    def define(builder: StreamsBuilder) -> None:
        table = windows(builder)
        table.left_join(
            table,
            both,
            mapper=earlier,
            selector=lambda windowed, before: windowed,
            materialized=Materialized("result", key_serde=TimeWindowedSerde(Serdes.string(), SIZE)),
        )

    for seed in range(schedules(30)):
        made, _, _ = result_of(Join(define, {WORDS: 3}, draw_words, lambda tables: {}), seed)
        rows = largest(draw_words(Random(seed)))

        assert made == {
            windowed: both(value, None if (before := earlier(windowed, value)) is None else rows.get(before))
            for windowed, value in rows.items()
        }, f"seed {seed}"


def test_windowed_table_joined_with_a_table_without_windows_equals_the_relational_join() -> None:
    def define(builder: StreamsBuilder) -> None:
        windows(builder).join(
            builder.table(RIGHT),
            both,
            mapper=lambda windowed, value: windowed.key,
            selector=lambda windowed, key: f"{windowed}",
            materialized="result",
        )

    def draw_both(random: Random) -> list[Sent]:
        names = [
            Sent(RIGHT, random.choice("abc"), random.choice([None, "A", "B"]), at) for at in range(random.randint(0, 9))
        ]
        mixed = names + draw_words(random)
        random.shuffle(mixed)
        return mixed

    for seed in range(schedules(30)):
        made, _, _ = result_of(Join(define, {WORDS: 3, RIGHT: 2}, draw_both, lambda tables: {}), seed)
        sent = draw_both(Random(seed))
        rows = largest([record for record in sent if record.topic == WORDS])
        names = final_rows(sent).get(RIGHT, {})

        assert made == {
            str(windowed): both(value, names[windowed.key]) for windowed, value in rows.items() if windowed.key in names
        }, f"seed {seed}"
