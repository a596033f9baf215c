"""What happens where one follows the other, and the tools that Java brings along."""

from __future__ import annotations

from tests.interop.conftest import MakeTurns
from tests.interop.programs import rows_of


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
    [warning] = [line for line in turns.python_log.read_text().splitlines() if " WARNING " in line]

    assert "of a Java application" in warning
    assert "LEAVE_GROUP" in warning
