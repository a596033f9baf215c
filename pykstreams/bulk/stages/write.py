"""The last stage: sorted rows of an engine become files, which are reported to the driver.

A file is written under a name that carries the attempt. Nobody reads it before it is named in the manifest, so what a
task leaves that was killed, or was the slower of two, is garbage and nothing else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

import pyarrow as pa

from pykstreams.bulk.stages.batches import CHUNK, REPORT
from pykstreams.bulk.stages.fold import StageReport, folded_rows, notes_and_rows
from pykstreams.bulk.stages.store_job import StoreJob
from pykstreams.state.bulk.manifest import content_hash, store_folder
from pykstreams.state.bulk.sst import SstFiles
from pykstreams.state.interfaces.engine import Row


def write(job: StoreJob, task: int, attempt: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes the rows of one task, which are sorted by key; yields one row, its report."""
    notes: list[dict[str, object]] = []
    found = _written(job, task, attempt, notes_and_rows(batches, notes))
    yield _report(task, found, notes)


def fold_and_write(
    job: StoreJob, task: int, attempt: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Folds and writes rows whose order stays as it is."""
    report = StageReport()
    found = _written(job, task, attempt, folded_rows(job, task, attempt, batches, report))
    yield _report(task, found, [report.as_note()])


def _written(job: StoreJob, task: int, attempt: str, rows: Iterator[Row]) -> dict[str, object]:
    if task == job.refused:
        for _ in rows:
            """Only notes come here."""
        return {"partition": None, "split": None, "files": [], "rows": 0, "content": 0}
    share, place = job.shares[task], job.target.store
    folder = store_folder(place.name, place.task(share.partition))
    files = SstFiles(job.root, folder, f"{attempt}-{share.split}", place.builder, job.application.config)
    content = count = 0
    while chunk := list(islice(rows, CHUNK)):
        files.add(chunk)
        content = content_hash(chunk, content)
        count += len(chunk)
    written = [{**asdict(file), "first": file.first.hex(), "last": file.last.hex()} for file in files.finish()]
    return {**share._asdict(), "files": written, "rows": count, "content": content}


def _report(task: int, found: dict[str, object], notes: list[dict[str, Any]]) -> pa.RecordBatch:
    refused: Counter[str] = Counter()
    for note in notes:
        refused.update(note["refused"])
    found["logged"] = sum(note["logged"] for note in notes)
    found["oldest"] = min((note["oldest"] for note in notes if note["oldest"] is not None), default=None)
    found["observed_time"] = max((note["observed_time"] for note in notes), default=-1)
    found["rejects"] = [note["rejects"] for note in notes if note["rejects"]]
    found["refused"] = refused
    return pa.RecordBatch.from_pylist([{"task": task, "report": json.dumps(found)}], schema=REPORT)
