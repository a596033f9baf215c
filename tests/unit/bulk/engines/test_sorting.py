"""Runs are sorted rows in files; more of them than a process may have open are merged all the same."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pykstreams.bulk.engines import sorting
from pykstreams.bulk.engines.sorting import SortedRuns, merged_runs

SCHEMA = pa.schema([("key", pa.int64())])
KEYS = ("key",)
RUNS = 100


@pytest.fixture
def few_files() -> Iterator[None]:
    """This process may open a few files more than it has, whatever other tests have left open."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(number) for number in os.listdir("/dev/fd"))
    taken = [os.dup(0)]
    while taken[-1] < highest:  # numbers that are free below it would count, too
        taken.append(os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + RUNS // 2, most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
    for number in taken:
        os.close(number)


def runs_in(folder: Path) -> list[Path]:
    """Each row is a run of its own; the last one has the lowest key."""
    runs = SortedRuns(folder, "run", SCHEMA, KEYS, run_bytes=1)
    for number in reversed(range(RUNS)):
        runs.add(pa.RecordBatch.from_pydict({"key": [number]}, SCHEMA))
    return runs.files


@pytest.mark.usefixtures("few_files")
@pytest.mark.parametrize("at_once", [3, 20])
def test_more_runs_than_files_may_be_open_are_merged(tmp_path: Path, at_once: int) -> None:
    files = runs_in(tmp_path)
    found = [key for batch in merged_runs(files, KEYS, at_once) for key in batch.column("key").to_pylist()]

    assert found == list(range(RUNS))
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_what_was_merged_in_between_is_deleted_when_nobody_reads_to_the_end(tmp_path: Path) -> None:
    files = runs_in(tmp_path)
    merged = merged_runs(files, KEYS, at_once=20)
    next(merged)

    assert len(list(tmp_path.iterdir())) == RUNS + 1

    del merged
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_wide_rows_are_in_memory_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "_BATCH_BYTES", 2_000)
    schema = pa.schema([*SCHEMA, ("value", pa.binary())])
    files = []
    for run in range(4):
        rows = {"key": [run + 4 * at for at in range(100)], "value": [b"x" * 1_000] * 100}
        runs = SortedRuns(tmp_path, f"run-{run}", schema, KEYS)
        runs.add(pa.RecordBatch.from_pydict(rows, schema))
        runs.spill()
        files += runs.files

    for at_once in (4, 2):
        batches = list(merged_runs(files, KEYS, at_once))
        assert list(range(400)) == [key for batch in batches for key in batch.column("key").to_pylist()]
        assert max(batch.num_rows for batch in batches) <= 8
