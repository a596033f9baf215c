"""Metadata of offsets are the same bytes for both: Java reads ours, and we read Java's."""

from __future__ import annotations

import pytest

from pykstreams.runtime.tasks.offset_metadata import decode, encode
from tests.interop.conftest import MakeTurns
from tests.interop.java_host import JavaHost
from tests.interop.modes import MODES
from tests.interop.programs import T0, rows_of

STARTS = 4


@pytest.mark.parametrize("mode", ["kept", "exactly once"])
def test_java_reads_what_a_worker_commits_as_it_was_meant(make_turns: MakeTurns, java: JavaHost, mode: str) -> None:
    turns = make_turns("emit_on_window_close", MODES[mode])
    rows = rows_of(turns.program)[0]
    turns.take_turn("P", rows)
    _, metadata = java.committed(turns.brokers, turns.name)[f"{turns.prefix}in", 0]
    time, numbers = decode(metadata.decode())

    assert time == T0 + max(row.time for row in rows)
    assert len(numbers) == 1  # when windows were looked through last
    assert metadata == encode(time, numbers).encode()


def test_worker_reads_what_java_has_committed_each_time_that_it_starts(make_turns: MakeTurns) -> None:
    """What lay behind the end of Java's metadata was read too, and was different each time."""
    turns = make_turns("counts_of_three_partitions")
    turns.take_turn("J", rows_of(turns.program)[0])
    for _ in range(STARTS):
        turns.start("P")
        turns.wait("all tasks run", lambda: turns.python_log.read_text().count(" runs; it reads") == 6)
        turns.stop()

        assert "cannot be read" not in turns.python_log.read_text()
