"""Rows that are sorted through files come back as a sorted list, however many runs there are."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.bulk.engines.sorting import SortedRuns, merged_runs

SCHEMA = pa.schema([("key", pa.binary()), ("time", pa.int64()), ("other", pa.int64())])

keys = st.one_of(st.none(), st.binary(max_size=3), st.sampled_from([b"", b"\x00", b"\x7f", b"\x80", b"\xff"]))
rows = st.lists(st.lists(st.tuples(keys, st.integers(0, 3), st.integers(0, 9)), max_size=12), max_size=8)


@given(rows, st.sampled_from([1, 200, 10_000]))
def test_what_is_merged_is_what_was_put_in_order(
    batches: list[list[tuple[bytes | None, int, int]]], limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = SortedRuns(Path(folder), "run", SCHEMA, ("key", "time"), limit)
        for batch in batches:
            if batch:
                runs.add(_record_batch(batch))
        found = [tuple(row.values()) for merged in runs.merged() for row in merged.to_pylist()]

    put = [row for batch in batches for row in batch]
    assert sorted(put, key=_order) == sorted(found, key=_order)
    assert [_order(row)[:2] for row in found] == sorted(_order(row)[:2] for row in put)


@given(rows, st.integers(2, 4))
def test_runs_that_are_merged_in_rounds_come_out_as_if_they_were_merged_at_once(
    batches: list[list[tuple[bytes | None, int, int]]], at_once: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = SortedRuns(Path(folder), "run", SCHEMA, ("key", "time"), 1)
        for batch in batches:
            if batch:
                runs.add(_record_batch(batch))
        together = [row for merged in merged_runs(runs.files, ("key", "time")) for row in merged.to_pylist()]
        in_rounds = [row for merged in merged_runs(runs.files, ("key", "time"), at_once) for row in merged.to_pylist()]

    assert together == in_rounds


def _record_batch(rows: list[tuple[bytes | None, int, int]]) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _order(row: tuple[bytes | None, int, int]) -> tuple[tuple[bool, bytes], int, int]:
    """Nulls come first."""
    key, time, other = row
    return (key is not None, key or b""), time, other
