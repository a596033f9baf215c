"""Taking over files: linked or copied, verified, all stores of a task or none, whenever the process ends."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import BootstrapError
from pykstreams.state.bulk.manifest import Manifest, publish, verify
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.take_over import StoreToMake, forget_next, mark_of, put_mark, take_over
from pykstreams.state.engines.rocksdb import RocksDbEngine
from tests.unit.state.bulk.bulk_support import CONFIG, TASK, Part, bootstrap, counts, rows_of
from tests.unit.state.support import Context

VALUES = {f"{number:03}": f'"{number}"' for number in range(300)}
ROOT = Path(__file__).parents[4]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bootstrap"


@pytest.fixture
def manifest(folder: Path) -> Manifest:
    made = bootstrap(
        folder, [(counts(), {0: Part(rows_of(VALUES), 300)}), (counts("sums"), {0: Part(rows_of({"a": "1"}), 5)})]
    )
    publish(folder, made)
    return made


def taken(manifest: Manifest, folder: Path, directory: Path) -> None:
    stores = [
        StoreToMake(counts(name), files, files.changelog_offset, None)
        for name, files in manifest.task_files(TASK).items()
    ]
    take_over(directory, TASK, folder, stores, CONFIG, "mark")


def read(directory: Path, name: str = "counts") -> dict[str, Any]:
    with OfflineStore.in_folder(counts(name), TASK, CONFIG, directory) as store:
        return {row.key: row.value for row in store.rows()}


def offset(directory: Path, name: str = "counts") -> int | None:
    engine = RocksDbEngine(name)
    engine.open(Context(directory))
    found = engine.committed_offset()
    engine.close()
    return found


def test_stores_hold_the_rows_of_the_files_and_stand_for_the_offset(
    manifest: Manifest, folder: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "0_0"
    taken(manifest, folder, directory)

    assert read(directory) == {key: value.strip('"') for key, value in VALUES.items()}
    assert read(directory, "sums") == {"a": 1}
    assert (offset(directory), offset(directory, "sums")) == (300, 5)
    assert mark_of(directory) == "mark"


def test_files_are_linked_and_stay_as_they_are(manifest: Manifest, folder: Path, tmp_path: Path) -> None:
    directory = tmp_path / "0_0"
    taken(manifest, folder, directory)
    linked = {path.stat().st_ino for path in directory.rglob("*.sst")}

    assert {(folder / file.path).stat().st_ino for file in manifest.files()} <= linked
    store = counts().build()
    store.init(context := Context(directory))
    context.record(1)
    store.put("000", None)
    store.commit(400)
    store.close()
    assert verify(folder, manifest) == []


def test_files_are_copied_where_they_cannot_be_linked(
    manifest: Manifest, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "link", refuse)
    taken(manifest, folder, tmp_path / "0_0")

    assert len(read(tmp_path / "0_0")) == 300
    assert verify(folder, manifest) == []


@pytest.mark.parametrize("linked", [True, False], ids=["linked", "copied"])
def test_a_damaged_file_is_refused_and_nothing_is_loaded(
    manifest: Manifest, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    if not linked:
        test_files_are_copied_where_they_cannot_be_linked(manifest, folder, tmp_path / "before", monkeypatch)
    path = folder / "stores/sums/0_0/0-0-0.sst"
    path.write_bytes(b"?" + path.read_bytes()[1:])

    with pytest.raises(BootstrapError, match=r"0-0-0\.sst is damaged: its sha256 .* Nothing was loaded") as raised:
        taken(manifest, folder, tmp_path / "0_0")
    assert raised.value.task_id == TASK
    assert list((tmp_path / "0_0").iterdir()) == []


def test_a_missing_file_is_refused(manifest: Manifest, folder: Path, tmp_path: Path) -> None:
    (folder / "stores/counts/0_0/0-0-0.sst").unlink()

    with pytest.raises(BootstrapError, match=r"stores/counts/0_0/0-0-0\.sst is missing"):
        taken(manifest, folder, tmp_path / "0_0")


def test_a_full_disk_is_told_and_leaves_nothing(
    manifest: Manifest, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "link", refuse)

    with pytest.raises(BootstrapError, match=r"task 0_0 cannot take over .* no space left on device; look at the disk"):
        taken(manifest, folder, tmp_path / "0_0")
    assert list((tmp_path / "0_0").iterdir()) == []


STEPS = [
    "pykstreams.state.bulk.take_over._gather",
    "pykstreams.state.bulk.take_over._OfFiles.ingest",
    "pykstreams.state.bulk.offline.OfflineStore.close",
    "pykstreams.state.bulk.take_over._write_mark",
    "pykstreams.state.bulk.take_over.sync_folder",
]
"""What is interrupted at its second call; the last is called after the rename, too."""


@pytest.mark.parametrize("step", STEPS)
def test_whenever_the_process_dies_there_is_all_or_nothing_and_the_next_attempt_succeeds(
    manifest: Manifest, folder: Path, tmp_path: Path, step: str
) -> None:
    directory = tmp_path / "0_0"
    script = f"""
import os, pkgutil
from pathlib import Path
from unittest import mock
from tests.unit.state.bulk import test_take_over as test
from pykstreams.state.bulk.manifest import read

folder, directory = Path({str(folder)!r}), Path({str(directory)!r})
real, calls = pkgutil.resolve_name({step!r}), []

def dies(*arguments):
    calls.append(1)
    if len(calls) == (1 if {step!r}.endswith("_mark") else 2):
        os._exit(9)
    return real(*arguments)

with mock.patch({step!r}, dies):
    test.taken(read(folder), folder, directory)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    renamed = (directory / "rocksdb").exists()

    assert done.returncode == 9, done.stderr
    assert renamed == step.endswith("sync_folder")
    if not renamed:
        assert mark_of(directory) is None
        taken(manifest, folder, directory)
    assert (len(read(directory)), offset(directory), mark_of(directory)) == (300, 300, "mark")
    assert verify(folder, manifest) == []


def test_state_that_comes_from_changelogs_can_be_marked_too(tmp_path: Path) -> None:
    put_mark(tmp_path, "mark")

    assert mark_of(tmp_path) == "mark"
    assert mark_of(tmp_path / "elsewhere") is None


def test_what_was_replaced_is_deleted_also_where_the_next_state_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "next").write_text("a file, which cannot be deleted as a folder")
    (tmp_path / "last").mkdir()

    with pytest.raises(NotADirectoryError):
        forget_next(tmp_path)

    assert not (tmp_path / "last").exists()
