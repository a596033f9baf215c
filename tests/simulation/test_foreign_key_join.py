"""Foreign-key joins give the relational join, in whatever order the tasks of both sides go on."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from pykstreams import KTable, StreamsBuilder
from pykstreams.processors import ForeignKeySerdes
from pykstreams.processors.foreign_keys.foreign_key_join import AskAgain
from pykstreams.runtime.tasks.context import NodeContext
from tests.simulation.cluster import Sent
from tests.simulation.schedules import SCHEDULES, Join, check, result_of

pytestmark = pytest.mark.slow

LEFT, RIGHT, FARTHER = "orders", "customers", "regions"
PARTITIONS = {LEFT: 2, RIGHT: 3, FARTHER: 2, "out": 2}
"""The foreign keys x, y and z are in three partitions of the right table."""


def foreign_key(value: str) -> str | None:
    return value.partition("|")[0] or None


def draw(random: Random) -> list[Sent]:
    """Quick changes of few rows: foreign keys change, vanish and come back, and so do rows of both sides."""
    sent = []
    for number in range(random.randint(10, 40)):
        if random.random() < 0.35:
            value = None if random.random() < 0.4 else f"R{number}"
            sent.append(Sent(RIGHT, random.choice("xyz"), value, number))
        elif random.random() < 0.15:
            sent.append(Sent(FARTHER, random.choice("01"), random.choice([None, f"F{number}"]), number))
        else:
            text = f"{random.choice(['x', 'y', 'z', 'x', 'y', ''])}|{random.randint(0, 2)}"
            value = None if random.random() < 0.15 else text
            sent.append(Sent(LEFT, random.choice("abcd"), value, number))
    return sent


def draw_withdrawals(random: Random) -> list[Sent]:
    """Rows that lose their foreign keys and are deleted; all right rows are there."""
    sent = [Sent(RIGHT, key, "R", 0) for key in "xyz"]
    for number in range(random.randint(10, 30)):
        text = f"{random.choice(['x', 'y', 'z', '', ''])}|{random.randint(0, 2)}"
        sent.append(Sent(LEFT, random.choice("abcdefgh"), None if random.random() < 0.3 else text, number))
    return sent


def define(kind: str, store: str | None = "result") -> Any:
    def add(builder: StreamsBuilder) -> None:
        left: KTable[str, str] = builder.table(LEFT)
        right: KTable[str, str] = builder.table(RIGHT)
        join: Any = getattr(left, kind)
        joined = join(right, lambda a, b: f"{a}+{b}", foreign_key_extractor=foreign_key, materialized=store)
        joined.to_stream().to("out")
        builder.table(FARTHER)

    return add


def define_chain(builder: StreamsBuilder) -> None:
    """Joins the result of a join, which is not materialized for anybody else, on another part of its value."""
    left: KTable[str, str] = builder.table(LEFT)
    right: KTable[str, str] = builder.table(RIGHT)
    farther: KTable[str, str] = builder.table(FARTHER)
    near = left.join(right, lambda a, b: f"{a}+{b}", foreign_key_extractor=foreign_key)
    both = near.join(farther, lambda a, b: f"{a}/{b}", foreign_key_extractor=number, materialized="result")
    both.to_stream().to("out")


def number(value: str) -> str:
    return value.partition("|")[2][:1]


def inner(tables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    right = tables.get(RIGHT, {})
    rows = tables.get(LEFT, {}).items()
    return {key: f"{row}+{right[foreign]}" for key, row in rows if (foreign := foreign_key(row) or "") in right}


def left(tables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    right = tables.get(RIGHT, {})
    return {key: f"{row}+{right.get(foreign_key(row) or '')}" for key, row in tables.get(LEFT, {}).items()}


def chain(tables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    farther = tables.get(FARTHER, {})
    return {key: f"{row}/{farther[number(row)]}" for key, row in inner(tables).items() if number(row) in farther}


INNER = Join(define("join"), PARTITIONS, draw, inner)
INNER_WITHOUT_STORE = Join(define("join", None), PARTITIONS, draw, inner)
LEFT_JOIN = Join(define("left_join"), PARTITIONS, draw, left)
CHAIN = Join(define_chain, PARTITIONS, draw, chain)


def test_inner_join_equals_the_relational_join_in_every_schedule() -> None:
    check(INNER)


def test_what_is_written_equals_the_relational_join_where_the_result_has_no_store() -> None:
    check(INNER_WITHOUT_STORE, stored=False)


def test_left_join_equals_the_relational_join_in_every_schedule() -> None:
    check(LEFT_JOIN)


def test_join_of_a_join_equals_the_relational_join_in_every_schedule() -> None:
    check(CHAIN)


@pytest.mark.parametrize("join", [INNER, LEFT_JOIN, CHAIN], ids=["inner", "left", "chain"])
def test_without_the_hash_check_stale_answers_make_wrong_rows(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForeignKeySerdes, "hash_of_left", lambda self, context: lambda value, headers: None)

    with pytest.raises(AssertionError, match="seed"):
        check(join, SCHEDULES)


def test_without_asking_anew_a_late_answer_leaves_a_row_that_should_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Kafka Streams does: the result of an inner join is not deleted where the answer that would is stale."""
    monkeypatch.setattr(NodeContext, "shared", lambda self, name, make: _Deaf())

    with pytest.raises(AssertionError, match="seed"):
        check(INNER, SCHEDULES)


def test_a_row_that_comes_back_as_it_was_is_asked_for_even_if_it_has_no_result_yet() -> None:
    """Seed 168: an answer to the first y|0 comes when the row is y|0 again, and y is gone."""
    check(INNER, 1, first_seed=168)


class _Deaf(AskAgain[object, object]):
    """Each end of the left side has its own, so neither hears of the other, and takes any answer for one to come."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = lambda key, value, timestamp, headers: True


def test_schedule_is_the_same_again_for_the_same_seed() -> None:
    first, second = (result_of(LEFT_JOIN, 7)[2].logs for _ in range(2))

    assert [(place, [m.value() for m in log]) for place, log in first.items()] == [
        (place, [m.value() for m in log]) for place, log in second.items()
    ]
