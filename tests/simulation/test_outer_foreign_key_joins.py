"""Right and full outer foreign-key joins give the relational join, and right totals, in whatever order tasks go on."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from pykstreams import Grouped, KTable, Materialized, Serdes, StreamsBuilder
from pykstreams.serdes import CombinedKey, CombinedKeySerde, OptionalSerde
from tests.simulation.cluster import Sent
from tests.simulation.schedules import Join, check, schedules

LEFT, RIGHT = "orders", "customers"
PARTITIONS = {LEFT: 2, RIGHT: 3}
KEYS = CombinedKeySerde(OptionalSerde(Serdes.string()), OptionalSerde(Serdes.string()))
Tables = Mapping[str, Mapping[str, str]]
Rows = dict[CombinedKey[str | None, str | None], str]


def foreign_key(value: str) -> str | None:
    return value.partition("|")[0] or None


def both(left: str | None, right: str | None) -> str:
    return f"{left}+{right}"


def draw(random: Random) -> list[Sent]:
    """Quick changes of few rows: references change, vanish and come back, and so do rows of both sides."""
    sent = []
    for number in range(random.randint(10, 40)):
        if random.random() < 0.35:
            value = None if random.random() < 0.4 else f"C{number}"
            sent.append(Sent(RIGHT, random.choice("xyz"), value, number))
        else:
            text = f"{random.choice(['x', 'y', 'z', ''])}|{random.randint(0, 2)}"
            sent.append(Sent(LEFT, random.choice("abcd"), None if random.random() < 0.2 else text, number))
    return sent


def outer(tables: Tables, *, keeps_left: bool) -> Rows:
    """The relational join: full outer, or right outer."""
    left, right = tables.get(LEFT, {}), tables.get(RIGHT, {})
    rows: Rows = {}
    for key, value in left.items():
        reference = foreign_key(value)
        if keeps_left or reference in right:
            rows[CombinedKey(reference, key)] = both(value, right.get(reference or ""))
    alone = set(right) - {foreign_key(value) for value in left.values()}
    return rows | {CombinedKey(key, None): both(None, right[key]) for key in alone}


def joined(builder: StreamsBuilder, keeps_left: bool, materialized: str | None = None) -> KTable[Any, str]:
    left: KTable[str, str] = builder.table(LEFT)
    right: KTable[str, str] = builder.table(RIGHT)
    join = left.outer_join if keeps_left else left.right_join
    result: KTable[Any, str] = join(right, both, foreign_key_extractor=foreign_key, materialized=materialized)
    return result


@pytest.mark.parametrize("keeps_left", [False, True], ids=["right join", "full outer join"])
def test_outer_join_equals_the_relational_join(keeps_left: bool) -> None:
    check(
        Join(
            lambda builder: joined(builder, keeps_left, "result"),
            PARTITIONS,
            draw,
            lambda tables: outer(tables, keeps_left=keeps_left),
        )
    )


def test_full_outer_join_without_a_store_is_read_row_by_row() -> None:
    def define(builder: StreamsBuilder) -> None:
        kept = Materialized[Any, str]("result", key_serde=KEYS)
        joined(builder, True).map_values(str.upper, materialized=kept)

    check(
        Join(
            define,
            PARTITIONS,
            draw,
            lambda tables: {key: value.upper() for key, value in outer(tables, keeps_left=True).items()},
        ),
        schedules(30),
    )


def without(kept: str, value: str) -> str:
    values = kept.split(";")
    assert value in values, f"{value!r} is taken from {kept!r}, where it is not"
    values.remove(value)
    return ";".join(values)


def collected(result: KTable[Any, str]) -> None:
    """Groups rows by the last letter; taking away one that was never added would raise."""
    grouped = result.group_by(lambda key, value: (value[-1:], value), Grouped(key_serde=Serdes.string()))
    added = grouped.aggregate(
        str, lambda key, value, kept: f"{kept};{value}", lambda key, value, kept: without(kept, value)
    )
    added.filter(lambda key, kept: kept != "").map_values(
        lambda kept: ";".join(sorted(kept.split(";"))), materialized="result"
    )


def collection(rows: Mapping[Any, str]) -> dict[str, str]:
    groups: dict[str, list[str]] = {}
    for value in rows.values():
        groups.setdefault(value[-1:], []).append(value)
    return {key: ";".join(["", *sorted(values)]) for key, values in groups.items()}


@pytest.mark.parametrize("keeps_left", [False, True], ids=["right join", "full outer join"])
def test_retraction_takes_exactly_what_was_added(keeps_left: bool) -> None:
    check(
        Join(
            lambda builder: collected(joined(builder, keeps_left)),
            PARTITIONS,
            draw,
            lambda tables: collection(outer(tables, keeps_left=keeps_left)),
        ),
        schedules(30),
    )
