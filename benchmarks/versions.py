"""Compares versioned stores with those of Kafka Streams: puts, late ones among them, and reads, by versions a key.

python -m benchmarks.versions [--rounds 3] [--operations 400000] [--versions 1,10,100] [--folder DIRECTORY]

No broker is needed: ``programs/versioned_store.py`` and ``programs/java/src/VersionedStore.java`` do the same to a
store in RocksDB each, in turn. Figures are CPU time of the process over the second half of the operations, so that the
JVM has warmed up; medians over the rounds, and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.programs.java_command import java_command

_TITLES: Final = {
    "put": "put, in order of time",
    "put-late": "put, one of five late",
    "get": "get",
    "get-as-of": "get as of a random time",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """What one kind of work took in one run, and a sum over what it gave."""

    cpu_us: float
    check: int


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program (default: %(default)s)")
    parser.add_argument(
        "--operations", type=int, default=400_000, help="puts, and reads of each kind (default: %(default)s)"
    )
    parser.add_argument(
        "--versions", type=_numbers, default=[1, 10, 100], help="how often each key is put (default: 1,10,100)"
    )
    parser.add_argument("--folder", type=Path, help="where the stores are made (default: one for temporary files)")
    arguments = parser.parse_args()
    ours = [sys.executable, "-m", "benchmarks.programs.versioned_store"]
    theirs = java_command("VersionedStore")
    console = Console()
    for versions in arguments.versions:
        rounds = []
        for _ in range(arguments.rounds):
            run = partial(_run, operations=arguments.operations, versions=versions, folder=arguments.folder)
            rounds.append((run(ours), run(theirs)))
        console.print(drawn(versions, arguments.operations, rounds))
    return 0


def read_figures(lines: Sequence[str]) -> dict[str, Figure]:
    """Reads what a program writes.

    >>> read_figures(["put 1000 2500000 7", "get 1000 1500000 8"])
    {'put': Figure(cpu_us=2.5, check=7), 'get': Figure(cpu_us=1.5, check=8)}
    """
    found = {}
    for line in lines:
        name, count, cpu_ns, check = line.split()
        found[name] = Figure(int(cpu_ns) / int(count) / 1000, int(check))
    return found


def drawn(versions: int, operations: int, rounds: Sequence[tuple[dict[str, Figure], dict[str, Figure]]]) -> Table:
    """The table of one number of versions; ``RuntimeError`` where the programs gave unequal results."""
    table = Table(title=f"{operations // versions:,} keys with {versions} versions each", title_justify="left")
    table.add_column("CPU us", no_wrap=True)
    for heading in ("pykstreams", "java", "ratio"):
        table.add_column(heading, justify="right")
    for name, title in _TITLES.items():
        pairs = [(ours[name], theirs[name]) for ours, theirs in rounds]
        if any(one.check != other.check for one, other in pairs):
            raise RuntimeError(f"{name} with {versions} versions a key gave unequal results: {pairs}")
        ratio = median(one.cpu_us / other.cpu_us for one, other in pairs)
        times = (median(each.cpu_us for each in run) for run in zip(*pairs, strict=True))
        table.add_row(title, *(f"{time:.2f}" for time in times), f"{ratio:.2f}")
    return table


def _run(command: Sequence[str], *, operations: int, versions: int, folder: Path | None) -> dict[str, Figure]:
    with TemporaryDirectory(prefix="bench-versions-", dir=folder) as place:
        job = {"keys": operations // versions, "versions": versions, "reads": operations, "folder": place}
        arguments = [f"{name}={value}" for name, value in job.items()]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[-1]} failed:\n{done.stdout}{done.stderr}")
    return read_figures(done.stdout.splitlines())


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
