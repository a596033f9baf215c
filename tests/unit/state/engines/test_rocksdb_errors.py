"""The errors for what RocksDB says; what damaged files and full disks make of them is tested in ``test_rocksdb.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
from rocksdict import DbClosedError, Rdict

from pykstreams.core.errors import InvalidStateStoreError, StoreEngineError
from pykstreams.core.ids import TaskId
from pykstreams.state.engines.rocksdb_errors import EnginePlace, not_open


def test_read_of_a_database_that_was_closed_is_one_of_a_store_that_is_not_open(tmp_path: Path) -> None:
    db = Rdict(str(tmp_path / "rows"))
    db.close()
    with pytest.raises(DbClosedError) as raised:
        db.get(b"a")

    error = EnginePlace("rows", TaskId(0, 1), tmp_path).failed("read", raised.value)

    assert type(error) is InvalidStateStoreError
    assert str(error) == str(not_open("rows")) == "store 'rows' is not open; ask the context for the store again"


def test_any_other_error_names_the_store_and_its_task_and_where_to_look() -> None:
    place = EnginePlace("rows", TaskId(0, 1), Path("state"))

    error = place.failed("read", Exception("IO error: While pread offset 0"))

    assert isinstance(error, StoreEngineError)
    assert error.task_id == TaskId(0, 1)
    assert str(error).startswith("store 'rows' of task 0_1 in 'state' cannot be read: IO error: While pread offset 0.")
    assert "Look at the disk (space, permissions)" in str(error)


def test_too_many_open_files_are_no_matter_of_the_disk() -> None:
    place = EnginePlace("rows", TaskId(0, 1), Path("state"))

    error = place.failed("opened", Exception("IO error: While open a file for appending: x: Too many open files"))

    assert type(error) is StoreEngineError
    assert "Raise the limit of open files (ulimit -n, or LimitNOFILE of systemd)" in str(error)
    assert "disk" not in str(error)
