"""What is printed, and what goes into the JSON file."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import settings
from benchmarks.commands import OURS
from benchmarks.figures import Figures, middle, ratio
from benchmarks.workloads import Workload


def wide_console() -> Console:
    """Standard output, with room for a table also where it is no terminal."""
    return Console(width=None if sys.stdout.isatty() else 120)


def table(workload: Workload, results: Mapping[str, Sequence[Figures]]) -> Table:
    """One row per program: medians of its runs, and how much CPU pykstreams takes against it."""
    drawn = Table(title=f"{workload.name}: {workload.title}", title_justify="left")
    drawn.add_column("program", no_wrap=True)
    # in seconds per million records; the last column is the ratio of that
    reads = ("store reads per record",) if workload.counts_reads else ()
    for heading in ("records/s", "CPU s/M", "of the runs", "peak MB", "output", *reads, f"{OURS}/it"):
        drawn.add_column(heading, justify="right")
    for program, runs in results.items():
        against = ratio(results.get(OURS, ()), runs) if program != OURS else None
        drawn.add_row(
            program,
            f"{middle(run.records_per_second for run in runs) or 0:,.0f}",
            f"{middle(run.cpu_seconds_per_million for run in runs) or 0:.2f}",
            " ".join(f"{run.cpu_seconds_per_million:.2f}" for run in runs),
            f"{middle(run.peak_mb for run in runs) or 0:.0f}",
            f"{middle(run.output_records for run in runs) or 0:,.0f}",
            *(_reads(runs) for _ in reads),
            f"{against:.2f}" if against is not None else "",
        )
    return drawn


def comparison(workload: Workload, one: Mapping[str, Sequence[Figures]], other: Mapping[str, Sequence[Figures]]) -> str:
    """How much CPU and how many reads of stores ``workload.other_way_of`` takes, against the workload itself."""
    told = []
    for program, runs in one.items():
        against = ratio(runs, other[program])
        reads = _reads(runs)
        if against is not None and reads:
            told.append(f"{program} {against:.2f} of the CPU, {reads} reads for {_reads(other[program])}")
    return f"{workload.other_way_of} / {workload.name}: {'; '.join(told)}"


def _reads(runs: Sequence[Figures]) -> str:
    found = middle(run.reads_per_record for run in runs)
    return "" if found is None else f"{found:.2f}"


def write_json(path: Path, records: int, results: Mapping[str, Mapping[str, Sequence[Figures]]]) -> None:
    """Writes every run, with what it was run on."""
    rules = {name.lower(): value for name, value in vars(settings).items() if name.isupper()}
    packages = ("confluent-kafka", "rocksdict", "orjson")
    content = {
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()},
        "packages": {name: version(name) for name in packages},
        "settings": {"records": records, **rules},
        "workloads": {
            workload: {program: [asdict(run) for run in runs] for program, runs in by_program.items()}
            for workload, by_program in results.items()
        },
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
