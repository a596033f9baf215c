"""How runs of the programs that put into versioned stores are compared."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.versions import Figure, drawn, read_figures

KINDS = ["put", "put-late", "get", "get-as-of"]


def run(cpu_us: float, check: int = 1) -> dict[str, Figure]:
    return {kind: Figure(cpu_us, check) for kind in KINDS}


def test_the_ratio_is_the_median_of_the_rounds_and_not_of_the_times() -> None:
    table = drawn(10, 1000, [(run(2), run(4)), (run(9), run(10)), (run(3), run(12))])
    text = StringIO()
    Console(width=100, file=text).print(table)

    assert "100 keys with 10 versions each" in text.getvalue()
    assert "│ get                     │       3.00 │ 10.00 │  0.50 │" in text.getvalue()


def test_programs_that_give_unequal_results_are_not_compared() -> None:
    with pytest.raises(RuntimeError, match="put with 1 versions a key gave unequal results"):
        drawn(1, 10, [(run(1), run(1)), (run(1), run(1, check=2))])


def test_the_program_tells_of_each_kind_of_work(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.programs.versioned_store", "keys=5", "versions=4", "reads=20"]
    done = subprocess.run([*command, f"folder={tmp_path}"], capture_output=True, text=True, check=True)

    assert set(read_figures(done.stdout.splitlines())) == set(KINDS)
