"""What happens where one follows the other, and the tools that Java brings along."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.interop.conftest import MakeTurns
from tests.interop.outcome import Outcome, differences, outcome_of
from tests.interop.programs import Row, rows_of
from tests.interop.turns import Turns


def test_worker_waits_for_java_members_that_stay_after_close_and_says_how_to_be_rid_of_them(
    make_turns: MakeTurns,
) -> None:
    turns = make_turns("count")
    turns.send(rows_of(turns.program)[0])
    turns.start("J")
    turns.settle()
    turns.stop(leave=False)
    turns.start("P")
    turns.wait("it runs", lambda: "rebalancing -> running" in turns.python_log.read_text())
    warning = next(line for line in turns.python_log.read_text().splitlines() if "Inconsistent group protocol" in line)

    assert "of a Java application" in warning
    assert "LEAVE_GROUP" in warning


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
