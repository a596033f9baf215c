"""What happens where one follows the other, and the tools that Java brings along."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import TopicPartition

from tests.brokers.records import key_of, partition_of
from tests.interop.conftest import MakeTurns
from tests.interop.modes import MODES, Mode
from tests.interop.outcome import Outcome, differences, outcome_of
from tests.interop.programs import EXACTLY_ONCE, Row, rows_of
from tests.interop.turns import Turns


def test_worker_waits_for_java_members_that_stay_after_close_and_says_how_to_be_rid_of_them(
    make_turns: MakeTurns,
) -> None:
    turns = make_turns("count")
    turns.settings["consumer.session.timeout.ms"] = "45000"  # longer than a worker takes to come, and to be heard
    turns.send(rows_of(turns.program)[0])
    turns.start("J")
    turns.settle()
    turns.stop(leave=False)
    turns.start("P")

    def warnings() -> list[str]:
        return [line for line in turns.python_log.read_text().splitlines() if "joining the group has taken" in line]

    turns.wait("it says what it waits for", lambda: bool(warnings()))

    assert "one of Java (45 s by default) also after KafkaStreams.close()" in warnings()[0]
    assert "LEAVE_GROUP" in warnings()[0]


RIGHT = [Row("right", None, "ash", "tall", 1000, [])]
LEFT = [
    Row("left", None, key, value, 1001 + number, [])
    for number, (key, value) in enumerate(
        [("a", "ash 1"), ("b", "birch 1"), ("a", "ash 2"), ("c", "-none 1"), ("b", None), ("a", "birch 2")]
    )
]


def test_what_lies_in_the_inputs_counts_as_new_where_the_last_worker_was_stopped(make_turns: MakeTurns) -> None:
    """Where it has died, messages of a foreign-key join may be lost, and more of them are sent."""

    def outcome(turns: Turns, pattern: str) -> Outcome:
        offsets = []
        for who, rows in zip(pattern, (RIGHT, LEFT), strict=True):
            turns.send(rows)
            turns.start(who)
            turns.settle()
            turns.stop()
            offsets.append(turns.java.committed(turns.brokers, turns.name))
        return outcome_of(turns, offsets)

    applications = {pattern: make_turns("inner_foreign_key_join") for pattern in ("JK", "JP", "PP")}
    with ThreadPoolExecutor() as pool:
        java, after_java, after_python = pool.map(outcome, applications.values(), applications)

    assert differences(java, after_java, last_only=False, loose=False) == []
    assert differences(java, after_python, last_only=False, loose=False) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("first", "second"), ["JP", "PJ"])
def test_what_a_dead_worker_leaves_is_taken_up_once_the_group_has_forgotten_it(
    make_turns: MakeTurns, first: str, second: str
) -> None:
    turns = make_turns("count", MODES["kill"])
    before, after = rows_of(turns.program)[:2]
    turns.take_turn(first, before)
    turns.take_turn(second, after)

    assert turns.ends()[f"{turns.prefix}out", 0] == len(before) + len(after)


@pytest.mark.nightly
@pytest.mark.parametrize("program", ["count", "left_foreign_key_join"])
@pytest.mark.parametrize("after", ["J", "P"])
def test_reset_tool_of_java_lets_an_application_of_ours_begin_anew(
    make_turns: MakeTurns, program: str, after: str
) -> None:
    turns = make_turns(program, Mode(fresh=True))
    rows = [row for phase in rows_of(program)[:2] for row in phase]
    turns.send(rows)
    turns.start("P")
    turns.settle()
    turns.stop()
    first = last_values(turns, 0)
    begin = turns.ends()[f"{turns.prefix}out", 0]
    done = turns.java.run_tool(
        "org.apache.kafka.tools.StreamsResetter",
        *("--application-id", turns.name, "--bootstrap-server", turns.brokers, "--force"),
        *("--input-topics", ",".join(turns.prefix + name for name in turns.spec.inputs)),
    )
    turns.wait("internal topics are gone", lambda: not [name for name in turns.topics() if "changelog" in name])
    turns.start(after)
    turns.settle()
    turns.stop()

    assert done.returncode == 0, done.stdout + done.stderr
    assert last_values(turns, begin) == first


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("program", "mode"),
    [
        ("counts_of_three_partitions", Mode()),
        ("table_aggregate", Mode()),
        ("aggregate", Mode(settings=EXACTLY_ONCE)),
        ("counts_of_three_partitions", Mode(settings=EXACTLY_ONCE, kill=True)),
        ("aggregate", Mode(settings=EXACTLY_ONCE, kill=True)),
    ],
)
@pytest.mark.parametrize("pattern", ["JP", "PJ"])
def test_change_in_the_middle_of_the_work_loses_and_repeats_nothing(
    make_turns: MakeTurns, program: str, mode: Mode, pattern: str
) -> None:
    """With records in repartition topics, which the second one goes on with."""
    rows = many(40_000)
    alone, turns = make_turns(program, mode), make_turns(program, mode)
    for one in (alone, turns):
        one.send(rows)
    alone.start("J")
    alone.settle()
    alone.stop()
    first, second = tuple(pattern)
    turns.start(first)
    turns.wait("an eighth is done", lambda: written(turns) >= len(rows) // 8)
    turns.stop(kill=mode.kill)
    turns.start(second)
    turns.settle()
    turns.stop()

    assert last_values(turns, 0) == last_values(alone, 0)


def many(count: int) -> list[Row]:
    chance = random.Random("middle")
    words = ("ash", "birch", "cedar", "dogwood", "elm")
    return [
        Row("in", None, chance.choice("abcdefghijklmnop"), f"{chance.choice(words)} {number}", 1000 + number // 10, [])
        for number in range(count)
    ]


def written(turns: Turns) -> int:
    ends = turns.ends()
    return sum(ends[f"{turns.prefix}out", number] for number in range(turns.spec.partitions))


def last_values(turns: Turns, begin: int) -> dict[tuple[int, bytes], bytes]:
    """The last result of each key that has one, of those behind an offset."""
    places = [TopicPartition(f"{turns.prefix}out", number, begin) for number in range(turns.spec.partitions)]
    last = {(partition_of(found), key_of(found)): found.value() for found in turns.records(places)}
    return {place: value for place, value in last.items() if value is not None}
