"""The benchmarks' program sees the commits of a worker, under both guarantees."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from benchmarks.cluster import Cluster
from benchmarks.runs import Runs
from benchmarks.topics.fill import Topics
from benchmarks.workloads import WORKLOADS

pytestmark = pytest.mark.slow

RECORDS = 2_000
COMMAND = [sys.executable, "-m", "benchmarks.programs.streams"]


def test_run_ends_when_all_its_records_are_committed_under_both_guarantees(
    bootstrap_servers: str, make_name: Callable[[str], str]
) -> None:
    at_least_once, exactly_once = WORKLOADS["w2"], WORKLOADS["w2-exactly-once"]
    topics = Topics(bootstrap_servers)
    runs = Runs(Cluster(bootstrap_servers, registry="", topics=topics), {"commit_interval_ms": "200"})
    inputs = at_least_once.inputs(RECORDS)  # the same for both
    for topic, payloads in inputs.items():
        topics.create(topic)
        topics.fill(topic, payloads)
    try:
        for workload in (at_least_once, exactly_once):
            figures, _ = runs.run(workload, COMMAND, make_name("bench"), RECORDS)
            assert figures.records_per_second > 0
            assert figures.cpu_seconds_per_million > 0
    finally:
        for topic in inputs:
            topics.remove(topic)
