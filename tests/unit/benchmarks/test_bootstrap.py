"""How the ways to come by state are compared, and how the memory of processes is seen."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO

from rich.console import Console

from benchmarks.bootstrap import drawn
from benchmarks.memory import PYTHON, ProcessesBelow


def test_the_slowest_bootstrap_counts_by_the_median_of_its_ratios_to_the_replay_of_the_same_round() -> None:
    times = {
        "replay": [(30.0, 33.0), (60.0, 63.0), (32.0, 35.0)],
        "linked": [(1.0, 4.0), (3.0, 6.0), (1.0, 4.0)],
        "copied": [(2.0, 5.0), (3.0, 6.0), (2.0, 5.0)],
    }
    table, slowest = drawn("replay", times)
    text = StringIO()
    Console(width=120, file=text).print(table)

    assert slowest == 16.0
    assert "1.00 3.00 1.00" in text.getvalue()
    assert "1/30.0" in text.getvalue()


def test_the_memory_of_a_process_of_a_process_is_seen() -> None:
    takes = "memory = bytearray(80_000_000); print('taken', flush=True); input()"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {takes!r}])"
    with ProcessesBelow() as processes:
        process = subprocess.Popen(
            [sys.executable, "-c", starts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        processes.look()
        process.communicate("\n")

    assert 75 < (processes.largest(PYTHON) or 0) < 200
