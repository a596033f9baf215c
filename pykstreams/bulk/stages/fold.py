"""The second stage: sorted rows of one share become changelog rows, which are logged, and then rows of the engine.

The store itself makes engine rows of changelog rows (``OfflineStore``), key after key. Where rows are folded in the
order of time, the changelog rows come by time, too, and are sorted by key before the store gets them: then
``fold_by_time`` and ``restore`` stand for ``fold``.

A task that is tried again, or twice at once, logs its rows again. That is harmless, as long as it ends before the job
does: the changelog rows of equal rows are equal and in the same order, so what a store restores from them is the same,
whichever attempt wrote a row last.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from pykstreams.bulk.brokers.changelog import ChangelogOutput
from pykstreams.bulk.stages.batches import (
    CHUNK,
    EncodedColumns,
    batches_of_rows,
    encoded_rows,
    note,
    rows_of,
)
from pykstreams.bulk.stages.store_job import Share, StoreJob
from pykstreams.bulk.targets.target import EncodedRow, RowError
from pykstreams.state.bulk.folder import folder_at
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.directory.durable_files import sync_file
from pykstreams.state.interfaces.engine import Row
from pykstreams.state.interfaces.store import ChangelogRow


@dataclass(slots=True)
class StageReport:
    """The report of a stage of one task: counted rows, and what the manifest needs.

    :param oldest: the lowest timestamp of the rows of the changelog.
    """

    logged: int = 0
    oldest: int | None = None
    observed_time: int = -1
    refused: Counter[str] = field(default_factory=Counter)
    rejects: str | None = None

    def as_note(self) -> dict[str, object]:
        """As what a note says."""
        return {
            "logged": self.logged,
            "oldest": self.oldest,
            "observed_time": self.observed_time,
            "refused": dict(self.refused),
            "rejects": self.rejects,
        }

    def to_json(self) -> str:
        """As the text of a note."""
        return json.dumps(self.as_note())


def fold(job: StoreJob, task: int, attempt: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Makes engine rows of rows that are sorted by key; at the end, a note."""
    report = StageReport()
    yield from batches_of_rows(folded_rows(job, task, attempt, batches, report))
    yield note(report.to_json())


def folded_rows(
    job: StoreJob, task: int, attempt: str, batches: Iterable[pa.RecordBatch], report: StageReport
) -> Iterator[Row]:
    """The same without batches, for a stage that follows in the same process; the report is complete at the end."""
    if task == job.refused:
        _count_refused(job, attempt, batches, report)
        return
    share = job.shares[task]
    with _Refusals(job, share, attempt, report) as refusals, _log(job, share) as log:
        rows = job.target.folder()(encoded_rows(batches), refusals)
        yield from _engine_rows(job, share, _logged(rows, log, report), report)


def fold_by_time(job: StoreJob, task: int, attempt: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Makes changelog rows of rows that are sorted by time, as encoded rows; its report is a row with a reason."""
    columns, report = EncodedColumns(), StageReport()
    if task == job.refused:
        _count_refused(job, attempt, batches, report)
        columns.add(task, None, 0, report.to_json().encode())
        yield columns.batch()
        return
    share = job.shares[task]
    with _Refusals(job, share, attempt, report) as refusals, _log(job, share) as log:
        rows = job.target.folder()(encoded_rows(batches), refusals)
        for at, (key, value, time, headers) in enumerate(_logged(rows, log, report)):
            columns.add(task, key, time, value, headers, order=at)
            if len(columns) == CHUNK:
                yield columns.batch()
    columns.add(task, None, 0, report.to_json().encode())
    yield columns.batch()


def restore(job: StoreJob, task: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Makes engine rows of changelog rows that are sorted by key, and passes notes on."""
    report = StageReport()

    def logged() -> Iterator[ChangelogRow]:
        for key, time, value, headers in encoded_rows(batches):
            if key is None:
                notes.append(value or b"")
            else:
                yield key, value, time, headers

    notes: list[bytes] = []
    if task == job.refused:
        list(logged())
    else:
        yield from batches_of_rows(_engine_rows(job, job.shares[task], logged(), report))
        yield note(report.to_json())
    for text in notes:
        yield note(text.decode())


def _logged(
    rows: Iterator[ChangelogRow], log: Callable[[ChangelogRow], None] | None, report: StageReport
) -> Iterator[ChangelogRow]:
    oldest: float = math.inf
    for row in rows:
        if log is not None:
            log(row)
        report.logged += 1
        if row[2] < oldest:
            oldest = row[2]
        yield row
    report.oldest = None if oldest == math.inf else int(oldest)


def _engine_rows(job: StoreJob, share: Share, rows: Iterator[ChangelogRow], report: StageReport) -> Iterator[Row]:
    """Restores changelog rows as the store does it, and yields the rows of its engine."""
    place = job.target.store
    config = job.application.config
    with OfflineStore.in_memory(place.builder, place.task(share.partition), config, topic=place.serde_topic) as store:
        for chunk in _chunks(rows):
            if store.in_files:
                store.restore(chunk)
                yield from store.drain()
        report.observed_time = store.observed_time


def _chunks(rows: Iterator[ChangelogRow]) -> Iterator[list[ChangelogRow]]:
    """Rows in lists that end where a key ends."""
    following = next(rows, None)
    while following is not None:
        chunk = [following, *islice(rows, CHUNK - 1)]
        following = next(rows, None)
        while following is not None and following[0] == chunk[-1][0]:
            chunk.append(following)
            following = next(rows, None)
        yield chunk


def _log(job: StoreJob, share: Share) -> AbstractContextManager[Callable[[ChangelogRow], None] | None]:
    if not job.logs:
        return nullcontext(None)
    place = job.target.store
    return ChangelogOutput(job.application.config, place.serde_topic, share.partition)


def _count_refused(job: StoreJob, attempt: str, batches: Iterable[pa.RecordBatch], report: StageReport) -> None:
    """Counts the rows that the first stage refused, and writes them to a file if the user wants that."""
    with _Rejects(job, attempt, report) as write:
        for batch in batches:
            columns: Any = zip(*(batch.column(name).to_pylist() for name in ("reason", "order", "value")), strict=True)
            for reason, count, line in columns:
                report.refused[reason] += count
                if line is not None:
                    write(line)


class _Rejects:
    """The file of refused rows, one JSON object a line; made when there is one."""

    def __init__(self, job: StoreJob, attempt: str, report: StageReport) -> None:
        self._name = f"rejects/{job.spec.store}/{attempt}.jsonl"
        self._root = folder_at(job.root)
        self._report = report
        self._file: Any = None

    def __enter__(self) -> Callable[[bytes], None]:
        return self._write

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            sync_file(self._root.room(self._name))
            self._root.keep(self._name)

    def _write(self, line: bytes) -> None:
        if self._file is None:
            self._file = self._root.room(self._name).open("wb")
            self._report.rejects = self._name
        self._file.write(line + b"\n")


class _Refusals:
    """Notes the rows that a fold cannot take."""

    def __init__(self, job: StoreJob, share: Share, attempt: str, report: StageReport) -> None:
        self._job, self._report = job, report
        self._rejects = _Rejects(job, f"{attempt}-{share.partition}-{share.split}", report)
        self._write = self._rejects.__enter__()

    def __enter__(self) -> Callable[[Exception, EncodedRow], None]:
        return self._refuse

    def __exit__(self, *_: object) -> None:
        self._rejects.__exit__()

    def _refuse(self, error: Exception, row: EncodedRow) -> None:
        spec = self._job.spec
        if spec.on_error == "fail":
            raise RowError(
                f'a row for store {spec.store!r} cannot be taken: {error}; or say on_error="count" or "rejects"'
            ) from error
        self._report.refused[type(error).__name__] += 1
        if spec.on_error == "rejects":
            key, time, value, _ = row
            shown = {"key": key.hex(), "timestamp": time, "value": None if value is None else value.hex()}
            self._write(json.dumps({"reason": str(error), "serialized": shown}).encode())


def notes_and_rows(batches: Iterable[pa.RecordBatch], notes: list[dict[str, object]]) -> Iterator[Row]:
    """The rows of an engine; notes are put aside."""
    for key, value in rows_of(batches):
        if key is None:
            notes.append(json.loads(value))
        else:
            yield key, value
