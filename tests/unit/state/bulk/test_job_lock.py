"""A job that takes a folder finds it as if no job had failed in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykstreams.state.bulk.job_lock import LOCK, held_by_job


def write(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("content")


def test_records_and_refused_rows_of_a_failed_job_are_deleted_by_the_next_one(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"), held_by_job(tmp_path):
        write(tmp_path / "records" / "out" / "part-00000.parquet")
        write(tmp_path / "rejects" / "customers" / "attempt.jsonl")
        raise OSError("the disk is full")
    with held_by_job(tmp_path):
        assert [tmp_path / LOCK] == list(tmp_path.iterdir())


def test_folders_of_these_names_stay_where_no_job_has_failed(tmp_path: Path) -> None:
    """A user may have put a bootstrap beside them."""
    write(tmp_path / "records" / "orders.parquet")
    with held_by_job(tmp_path):
        pass

    assert "content" == (tmp_path / "records" / "orders.parquet").read_text()
