"""The changelogs that tasks wrote: what a store restores from them, and the writing of it to the brokers.

Of each key the last record is enough, unless the store needs them all (``keeps_all``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pykstreams.bulk.backfills.records import SENT
from pykstreams.bulk.backfills.step import BackfillStep, keeps_all
from pykstreams.bulk.brokers.changelog import ChangelogOutput
from pykstreams.bulk.engines.sorting import SortedRuns
from pykstreams.bulk.sources.header_columns import headers_of
from pykstreams.state.interfaces.store import ChangelogRow

_BATCH_ROWS: Final = 10_000
_BY_KEY: Final = ("key", "number")


def logged_rows(step: BackfillStep, store: str, files: Sequence[str], scratch: Path) -> Iterator[ChangelogRow]:
    """Yields the rows that a store restores from the changelog of one task: in its order, or of each key the last."""
    if keeps_all(step.stores[store]):
        yield from _rows(batches_of_files(files))
        return
    runs = SortedRuns(scratch, f"logged-{store}", SENT, _BY_KEY)
    for batch in batches_of_files(files):
        runs.add(batch)
    last: ChangelogRow | None = None
    for row in _rows(runs.merged()):
        if last is not None and row[0] != last[0] and last[1] is not None:
            yield last
        last = row
    if last is not None and last[1] is not None:
        yield last


def write_changelog(step: BackfillStep, store: str, partition: int, files: Sequence[str], scratch: str) -> int:
    """Writes one partition of a changelog, and waits until all is delivered; gives the lowest timestamp, or -1.

    :param scratch: a folder that several attempts may have at once; each works in one of its own there.
    """
    Path(scratch).mkdir(parents=True, exist_ok=True)
    oldest = -1
    topic = step.place(store).serde_topic
    with (
        tempfile.TemporaryDirectory(dir=scratch) as folder,
        ChangelogOutput(step.application.config, topic, partition) as write,
    ):
        for row in logged_rows(step, store, files, Path(folder)):
            write(row)
            if oldest < 0 or row[2] < oldest:
                oldest = row[2]
    return oldest


def batches_of_files(files: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of files of sent records, one file after the other."""
    for name in files:
        with pq.ParquetFile(name) as file:
            yield from file.iter_batches(_BATCH_ROWS)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[ChangelogRow]:
    for batch in batches:
        columns: Any = [batch.column(name).to_pylist() for name in ("key", "value", "timestamp")]
        yield from zip(*columns, headers_of(batch.column("headers"), batch.num_rows), strict=True)
