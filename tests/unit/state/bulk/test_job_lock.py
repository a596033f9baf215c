"""A job that takes a folder finds it as if no job had failed in it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pykstreams.core.errors import BootstrapError
from pykstreams.state.bulk.folder import MANIFEST, folder_at
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


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    expected = pytest.raises(BootstrapError, match=r"file/out' cannot be made: Not a directory; name another one")
    with expected, held_by_job(tmp_path / "file" / "out"):
        raise AssertionError("nothing may be done there")


def test_a_folder_on_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    expected = pytest.raises(BootstrapError, match=r"cannot be locked for a job: .*No locks available")
    with expected, held_by_job(tmp_path):
        raise AssertionError("a job has begun")


def test_a_folder_in_which_another_job_has_published_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    write(tmp_path / "records" / "orders" / "part-00000.parquet")
    (tmp_path / MANIFEST).touch()
    (tmp_path / LOCK).touch()
    with pytest.raises(BootstrapError, match="holds a bootstrap already"), held_by_job(tmp_path):
        raise AssertionError("a job has begun")

    assert [MANIFEST, "records"] == sorted(path.name for path in tmp_path.iterdir())
    assert (tmp_path / "records" / "orders" / "part-00000.parquet").is_file()


def test_a_bootstrap_in_a_file_system_without_locks_is_refused_too() -> None:
    folder = folder_at("memory://job-lock/shop")
    folder.publish(MANIFEST, b"{}")
    with pytest.raises(BootstrapError, match="'memory://job-lock/shop' holds a bootstrap already"), held_by_job(folder):
        raise AssertionError("a job has begun")
    folder.delete(MANIFEST)
