"""Runs the same work through pykstreams, a bare client loop and Kafka Streams, in turn, and compares.

python -m benchmarks [--workloads w1-json,w2] [--records 2000000] [--runs 3] [--only pykstreams] [--json FILE]
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.cluster import benchmark_cluster
from benchmarks.commands import BARE, JAVA, OURS, commands, some
from benchmarks.figures import Figures
from benchmarks.peers import PEERS, peer_commands
from benchmarks.report import comparison, table, wide_console, write_json
from benchmarks.rounds import in_order
from benchmarks.runs import Runs
from benchmarks.workloads import WORKLOADS, Workload

TUNED = ("commit_interval_ms", "cache_bytes", "batch_bytes", "linger_ms")
"""Fields of ``Job`` that ``--set`` changes."""


def main() -> int:
    """Returns the exit code."""
    given = arguments()
    console = wide_console()
    programs = commands(given.only, console) | peer_commands(given.peers, console)
    results: dict[str, dict[str, list[Figures]]] = {}
    with benchmark_cluster() as cluster:
        runs = Runs(cluster, dict(given.set))
        filled: set[str] = set()
        for name in given.workloads:
            workload = WORKLOADS[name]
            records = min(given.records, workload.most or given.records)
            for topic, payloads in workload.inputs(records).items():
                if topic not in filled:
                    console.print(f"filling {topic}", highlight=False)
                    cluster.topics.create(topic)
                    cluster.topics.fill(topic, payloads)
                    filled.add(topic)
            able = {program: command for program, command in programs.items() if _can(program, workload)}
            reads = runs.count_reads(workload, able, records)
            by_program = results[name] = {program: [] for program in able}
            updated: dict[str, list[Figures]] = {program: [] for program in able}
            for number in range(1, given.runs + 1):
                for program, command in in_order([*able.items()], number - 1):
                    try:
                        figures, update = runs.run(workload, command, f"bench-{program}-{name}-{number}", records)
                    except RuntimeError as error:
                        if program not in PEERS:
                            raise
                        console.print(f"{name} without {program}: {error}", highlight=False, markup=False)
                        del able[program], by_program[program], updated[program]
                        continue
                    if update is not None:
                        updated[program].append(update)
                    by_program[program].append(replace(figures, reads_per_record=reads.get(program)))
                    console.print(
                        f"{name} {number}/{given.runs} {program}: {figures.records_per_second:,.0f} records/s, "
                        f"{figures.cpu_seconds_per_million:.2f} CPU s/M records",
                        highlight=False,
                    )
                    if given.threads and figures.threads:
                        told = ", ".join(f"{thread} {us:.2f}" for thread, us in figures.threads.items() if us >= 0.01)
                        console.print(f"  us of a record by thread, its start included: {told}", highlight=False)
                _check(workload, by_program)
            console.print(table(workload, by_program))
            if workload.updates is not None:
                results[f"{name}-updates"] = updated
                console.print(
                    table(replace(workload, name=f"{name}-updates", title="update of each right row"), updated)
                )
            if workload.other_way_of in results:
                told = comparison(workload, results[workload.other_way_of], by_program)
                console.print(told, highlight=False)
    if given.json is not None:
        write_json(given.json, given.records, results)
    return 0


def _can(program: str, workload: Workload) -> bool:
    """Whether a program does this work."""
    if program in PEERS:
        return workload.name in PEERS[program].workloads
    return program != BARE or workload.has_floor


def _check(workload: Workload, by_program: Mapping[str, Sequence[Figures]]) -> None:
    """Refuses to compare programs that did different work."""
    outputs = {program: runs[-1].output_records for program, runs in by_program.items()}
    if workload.same_output and len(set(outputs.values())) > 1:
        raise RuntimeError(f"{workload.name}: the programs wrote unequal numbers of records: {outputs}")


def setting(text: str) -> tuple[str, str]:
    """Reads a value of ``--set``."""
    name, _, value = text.partition("=")
    if name not in TUNED or not value.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number for one of {', '.join(TUNED)}")
    return name, value


def other_tables() -> list[str]:
    """A line for each module here that is a command besides this one."""
    told = []
    for path in sorted(Path(__file__).parent.glob("*.py")):
        describes = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if f"python -m benchmarks.{path.stem}" in describes:
            told.append(f"  python -m benchmarks.{path.stem:<14} {describes.splitlines()[0]}")
    return told


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__.splitlines()[0],
        epilog="other tables, each with a --help of its own:\n" + "\n".join(other_tables()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names, programs = list(WORKLOADS), [OURS, BARE, JAVA]
    parser.add_argument(
        "--workloads", type=partial(some, names), default=names, help=f"some of {','.join(names)} (default: all)"
    )
    parser.add_argument("--records", type=int, default=2_000_000, help="records per run (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each program (default: %(default)s)")
    parser.add_argument(
        "--only", type=partial(some, programs), default=programs, help=f"some of {','.join(programs)} (default: all)"
    )
    parser.add_argument(
        "--peers",
        type=partial(some, list(PEERS)),
        nargs="?",
        const=list(PEERS),
        default=[],
        metavar="NAMES",
        help=f"also some of {','.join(PEERS)} (no names: all), each installed in an environment of its own",
    )
    parser.add_argument(
        "--set",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help=f"another value for all programs of one of {', '.join(TUNED)}; may be repeated",
    )
    parser.add_argument("--threads", action="store_true", help="also the CPU time by kind of thread (Linux; not of w6)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run's figures to a file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
