"""That each row of the table has its programs."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from benchmarks.__main__ import other_tables, setting
from benchmarks.peers import PEERS
from benchmarks.programs import bare
from benchmarks.programs.job import Job
from benchmarks.programs.topologies import build
from benchmarks.workloads import WORKLOADS, Workload

JAVA = (Path(bare.__file__).parent / "java/src/Workloads.java").read_text(encoding="utf-8")


def job(workload: Workload) -> Job:
    return Job(workload.name, "none:1", "bench", "input", "output", "input", "state", registry="mock://workloads")


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_each_workload_has_a_topology_here_and_in_java(workload: Workload) -> None:
    assert build(job(workload)).describe() is not None
    assert f'"{workload.name}"' in JAVA


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_a_workload_has_a_bare_loop_where_it_says_so(workload: Workload) -> None:
    assert (workload.name in {*bare.WORK, "restore"}) == workload.has_floor


def test_workloads_that_share_a_topic_fill_it_alike() -> None:
    filled: dict[str, int] = {}
    for workload in WORKLOADS.values():
        for topic, payloads in workload.inputs(12).items():
            if not topic.endswith("-table"):
                assert filled.setdefault(topic, len(list(payloads))) == len(list(workload.inputs(12)[topic]))


def test_help_lists_the_other_tables() -> None:
    listed = "\n".join(other_tables())

    for name in ("latency", "scale", "start", "footprint", "bootstrap", "bootstrap_job", "scans", "versions", "cycles"):
        assert f"python -m benchmarks.{name} " in listed


def test_a_setting_is_a_field_of_each_job_and_a_whole_number() -> None:
    assert setting("linger_ms=5") == ("linger_ms", "5")
    for text in ("linger_ms", "linger_ms=soon", "workload=1"):
        with pytest.raises(ArgumentTypeError, match="no whole number for one of commit_interval_ms"):
            setting(text)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_does_workloads_that_there_are(name: str) -> None:
    assert set(PEERS[name].workloads) <= set(WORKLOADS)
