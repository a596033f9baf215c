"""Sorts more rows than fit into memory: sorted runs go to files, and are merged batch by batch.

Arrow sorts binary columns as unsigned bytes, as databases do. Invariant: in memory are the rows of one run while runs
are made, and one batch of each run while they are merged; and no more than ``AT_ONCE`` runs are merged, and open, at
once. Rows with equal keys come in the order of the files they are in.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

RUN_BYTES: Final = 64 << 20
AT_ONCE: Final = 200
"""How many runs are open at once: macOS lets a process open 256 files, Linux 1024, and databases need some, too."""
_BATCH_ROWS: Final = 10_000
_BATCH_BYTES: Final = 1 << 20
"""How many bytes the rows of a batch in a file have at most, unless there is only one."""


class SortedRuns:
    """Rows that are put in any order and come back sorted.

    :param folder: where runs are kept that do not fit into memory.
    :param stem: how their names begin.
    :param keys: the columns to sort by, all ascending, nulls first.
    """

    def __init__(
        self, folder: Path, stem: str, schema: pa.Schema, keys: Sequence[str], run_bytes: int = RUN_BYTES
    ) -> None:
        self._folder, self._stem, self._schema, self._keys = folder, stem, schema, tuple(keys)
        self._limit = run_bytes
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self.files: list[Path] = []
        """The runs that were written."""

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of rows are in memory."""
        return self._bytes

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds a batch."""
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= self._limit:
            self.spill()

    def spill(self) -> None:
        """Writes what waits to a file."""
        if not self._waiting:
            return
        path = self._folder / f"{self._stem}-{len(self.files)}.arrow"
        _write(path, self._schema, self._sorted().to_batches(max_chunksize=_BATCH_ROWS))
        self.files.append(path)

    def merged(self) -> Iterator[pa.RecordBatch]:
        """Yields everything, sorted."""
        if not self.files:
            if self._waiting:
                yield from self._sorted().to_batches(max_chunksize=_BATCH_ROWS)
            return
        self.spill()
        yield from merged_runs(self.files, self._keys)

    def _sorted(self) -> pa.Table:
        table = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting, self._bytes = [], 0
        return _in_order(table, self._keys)


def merged_runs(files: Sequence[Path], keys: Sequence[str], at_once: int = AT_ONCE) -> Iterator[pa.RecordBatch]:
    """Merges sorted runs.

    :param at_once: how many at once; more of them become fewer and longer ones first, in files beside them.
    """
    if len(files) <= at_once:
        yield from _merged(files, keys)
        return
    with tempfile.TemporaryDirectory(prefix="merged-", dir=files[0].parent) as folder:
        made = 0
        while len(files) > at_once:
            longer = []
            for first in range(0, len(files), at_once):  # neighbours, so that equal rows stay in their order
                path = Path(folder) / f"{made}.arrow"
                _merge_into(path, files[first : first + at_once], keys)
                longer.append(path)
                made += 1
            files = longer
        yield from _merged(files, keys)


def _merge_into(path: Path, files: Sequence[Path], keys: Sequence[str]) -> None:
    with pa.memory_map(str(files[0])) as first:
        schema = pa.ipc.open_file(first).schema
    _write(path, schema, _merged(files, keys))


def _write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            rows = max(1, batch.num_rows * _BATCH_BYTES // max(1, batch.nbytes))
            for at in range(0, batch.num_rows, rows):
                writer.write_batch(batch.slice(at, rows))


def _merged(files: Sequence[Path], keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Merges runs that may all be open.

    In turns: the run whose current batch ends first decides how far all of them may be taken; what is up to there is
    sorted at once, by Arrow instead of row by row.
    """
    runs = [_Run(path, keys) for path in files]
    if len(runs) == 1:
        yield from runs[0].rest()
        return
    ends = [(run.end(), at) for at, run in enumerate(runs) if run.is_open]
    heapq.heapify(ends)
    while ends:
        bound, at = ends[0]
        taken = [piece for run in runs if run.is_open for piece in run.up_to(bound)]
        if taken:  # another run that ends at the same row has been taken with it
            yield from _in_order(pa.Table.from_batches(taken), keys).to_batches(max_chunksize=_BATCH_ROWS)
        if runs[at].is_open:
            heapq.heapreplace(ends, (runs[at].end(), at))
        else:
            heapq.heappop(ends)


class _Run:
    """One run, of which one batch is in memory."""

    def __init__(self, path: Path, keys: Sequence[str]) -> None:
        self._file = pa.ipc.open_file(pa.memory_map(str(path)))
        self._keys = keys
        self._next = 0
        self._batch: Any = None
        self._at = 0
        self._advance()

    @property
    def is_open(self) -> bool:
        """Whether there are rows left."""
        return self._batch is not None

    def end(self) -> tuple[object, ...]:
        """The last row of the current batch."""
        return self._row(self._batch.num_rows - 1)

    def up_to(self, bound: tuple[object, ...]) -> Iterator[pa.RecordBatch]:
        """Yields the rows up to, and with, a bound, and goes on behind them."""
        while self.is_open:
            low, high = self._at, self._batch.num_rows
            while low < high:
                middle = (low + high) // 2
                if self._row(middle) <= bound:
                    low = middle + 1
                else:
                    high = middle
            if low > self._at:
                yield self._batch.slice(self._at, low - self._at)
            self._at = low
            if low < self._batch.num_rows:
                return
            self._advance()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows that are left."""
        while self.is_open:
            yield self._batch
            self._advance()

    def _advance(self) -> None:
        self._at = 0
        if self._next == self._file.num_record_batches:
            self._batch = None
            return
        self._batch = self._file.get_batch(self._next)
        self._next += 1

    def _row(self, at: int) -> tuple[object, ...]:
        values = (self._batch.column(name)[at].as_py() for name in self._keys)
        return tuple((value is not None, value) for value in values)


def _in_order(table: pa.Table, keys: Iterable[str]) -> pa.Table:
    order = pc.sort_indices(table, sort_keys=[(key, "ascending", "at_start") for key in keys])
    return table.take(order)
