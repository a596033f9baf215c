"""Runs the same work through pykstreams, a bare client loop and Kafka Streams, in turn, and compares.

python -m benchmarks [--workloads w1-json,w2] [--records 2000000] [--runs 3] [--only pykstreams] [--json FILE]
"""

from __future__ import annotations

import argparse
import ast
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.cluster import Cluster, benchmark_cluster
from benchmarks.commands import BARE, JAVA, OURS, commands, some
from benchmarks.figures import Figures, measure, parts
from benchmarks.process import Run, run_program
from benchmarks.programs.job import Job
from benchmarks.report import comparison, table, wide_console, write_json
from benchmarks.workloads import WORKLOADS, Workload


def main() -> int:
    """Returns the exit code."""
    arguments = _arguments()
    console = wide_console()
    programs = commands(arguments.only, console)
    results: dict[str, dict[str, list[Figures]]] = {}
    with benchmark_cluster() as cluster:
        filled: set[str] = set()
        for name in arguments.workloads:
            workload = WORKLOADS[name]
            records = min(arguments.records, workload.most or arguments.records)
            for topic, payloads in workload.inputs(records).items():
                if topic not in filled:
                    console.print(f"filling {topic}", highlight=False)
                    cluster.topics.create(topic)
                    cluster.topics.fill(topic, payloads)
                    filled.add(topic)
            able = {program: command for program, command in programs.items() if program != BARE or workload.has_floor}
            reads = _count_reads(cluster, workload, able, records)
            by_program = results[name] = {program: [] for program in able}
            updated: dict[str, list[Figures]] = {program: [] for program in able}
            for number in range(1, arguments.runs + 1):
                for program, command in able.items():
                    figures, update = _run(cluster, workload, command, f"bench-{program}-{name}-{number}", records)
                    if update is not None:
                        updated[program].append(update)
                    by_program[program].append(replace(figures, reads_per_record=reads.get(program)))
                    console.print(
                        f"{name} {number}/{arguments.runs} {program}: {figures.records_per_second:,.0f} records/s, "
                        f"{figures.cpu_seconds_per_million:.2f} CPU s/M records",
                        highlight=False,
                    )
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
    if arguments.json is not None:
        write_json(arguments.json, arguments.records, results)
    return 0


def _run(
    cluster: Cluster, workload: Workload, command: Sequence[str], application_id: str, records: int
) -> tuple[Figures, Figures | None]:
    """One run, on topics and a state directory of its own, and what the updates in it took, if there are any."""
    run, output = _watch(cluster, workload, command, application_id, records)
    if workload.updates is None:
        rate, cpu = measure(run.points, whole=workload.restores)
        return Figures(rate * workload.sources, cpu / workload.sources, run.peak_mb, output), None
    load, update = parts(run.points, records)
    return (
        Figures(*measure(load, whole=True), run.peak_mb, output),
        Figures(*measure(update, whole=True), run.peak_mb, output),
    )


def _count_reads(
    cluster: Cluster, workload: Workload, programs: Mapping[str, Sequence[str]], records: int
) -> dict[str, float]:
    """Reads of stores per record by program, from a run of each that is not timed."""
    if not workload.counts_reads:
        return {}
    found: dict[str, float] = {}
    for program, command in programs.items():
        name = f"bench-{program}-{workload.name}-reads"
        run, _ = _watch(cluster, workload, command, name, records, count_reads=True)
        if run.reads is not None:
            found[program] = run.reads / (run.points[-1].records * workload.sources)
    return found


def _watch(
    cluster: Cluster,
    workload: Workload,
    command: Sequence[str],
    application_id: str,
    records: int,
    *,
    count_reads: bool = False,
) -> tuple[Run, int]:
    """Runs a program; gives what was seen of it, and how many records it wrote.

    A record counts as done when as many are done in each of the topics.
    """
    workload.prepare(cluster.topics, application_id, records)
    measured = [f"{application_id}-{topic}" for topic in workload.through]
    if workload.updates is None:
        measured += workload.source_topics
    with tempfile.TemporaryDirectory(prefix="bench-state-") as state:
        job = Job(
            workload=workload.name,
            brokers=cluster.brokers,
            registry=cluster.registry,
            application_id=application_id,
            source=workload.source_of(application_id),
            sink=f"{application_id}-output",
            measured=",".join(measured),
            state_dir=state,
            cache_bytes=str(workload.cache_bytes),
            guarantee=workload.guarantee,
            count_reads="yes" if count_reads else "no",
        )
        if workload.updates is None:
            run = run_program(command, job, records // workload.sources)
        else:
            update = partial(workload.update, cluster.topics, application_id, records, 2)
            run = run_program(command, job, records, then=update, more=records)
    output = cluster.topics.count(job.sink)
    cluster.topics.remove(application_id)
    return run, output


def _check(workload: Workload, by_program: Mapping[str, Sequence[Figures]]) -> None:
    """Refuses to compare programs that did different work."""
    outputs = {program: runs[-1].output_records for program, runs in by_program.items()}
    if workload.same_output and len(set(outputs.values())) > 1:
        raise RuntimeError(f"{workload.name}: the programs wrote unequal numbers of records: {outputs}")


def other_tables() -> list[str]:
    """A line for each module here that is a command besides this one."""
    told = []
    for path in sorted(Path(__file__).parent.glob("*.py")):
        describes = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if f"python -m benchmarks.{path.stem}" in describes:
            told.append(f"  python -m benchmarks.{path.stem:<14} {describes.splitlines()[0]}")
    return told


def _arguments() -> argparse.Namespace:
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run's figures to a file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
