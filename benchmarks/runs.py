"""Runs of a program, each on topics and a state directory of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.cluster import Cluster
from benchmarks.figures import Figures, measure, parts
from benchmarks.process import Run, run_program
from benchmarks.programs.job import Job
from benchmarks.workloads import Workload


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs on one cluster."""

    cluster: Cluster
    settings: Mapping[str, str]
    """Fields of ``Job`` that have other values than the workload says."""

    def run(
        self, workload: Workload, command: Sequence[str], application_id: str, records: int
    ) -> tuple[Figures, Figures | None]:
        """One run, on topics and a state directory of its own, and what the updates in it took, if there are any."""
        run, output = self._watch(workload, command, application_id, records)
        if workload.updates is None:
            rate, cpu = measure(run.points, whole=workload.restores)
            threads = {name: 1e6 * seconds / records for name, seconds in run.threads.items()}
            return Figures(rate * workload.sources, cpu / workload.sources, run.peak_mb, output, threads=threads), None
        load, update = parts(run.points, records)
        return (
            Figures(*measure(load, whole=True), run.peak_mb, output),
            Figures(*measure(update, whole=True), run.peak_mb, output),
        )

    def count_reads(self, workload: Workload, programs: Mapping[str, Sequence[str]], records: int) -> dict[str, float]:
        """Reads of stores per record by program, from a run of each that is not timed."""
        if not workload.counts_reads:
            return {}
        found: dict[str, float] = {}
        for program, command in programs.items():
            name = f"bench-{program}-{workload.name}-reads"
            run, _ = self._watch(workload, command, name, records, count_reads=True)
            if run.reads is not None:
                found[program] = run.reads / (run.points[-1].records * workload.sources)
        return found

    def _watch(
        self,
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
        workload.prepare(self.cluster.topics, application_id, records)
        measured = [f"{application_id}-{topic}" for topic in workload.through]
        if workload.updates is None:
            measured += workload.source_topics
        with tempfile.TemporaryDirectory(prefix="bench-state-") as state:
            job = Job(
                workload=workload.name,
                brokers=self.cluster.brokers,
                registry=self.cluster.registry,
                application_id=application_id,
                source=workload.source_of(application_id),
                sink=f"{application_id}-output",
                measured=",".join(measured),
                state_dir=state,
                cache_bytes=str(workload.cache_bytes),
                guarantee=workload.guarantee,
                count_reads="yes" if count_reads else "no",
            )
            job = replace(job, **self.settings)
            if workload.updates is None:
                run = run_program(command, job, records // workload.sources)
            else:
                update = partial(workload.update, self.cluster.topics, application_id, records, 2)
                run = run_program(command, job, records, then=update, more=records)
        output = self.cluster.topics.count(job.sink)
        self.cluster.topics.remove(application_id)
        return run, output
