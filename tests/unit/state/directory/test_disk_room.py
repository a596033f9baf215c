"""The room on a disk, as those that wait for it measure it."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from pykstreams.state.directory.disk_room import DiskRoom, room_of


def test_room_of_a_folder_that_is_gone_is_that_of_the_nearest_one_above_it(tmp_path: Path) -> None:
    """What was deleted while a task waits, or could not even be made, would never have room again."""
    gone = tmp_path / "shop" / "0_0" / "rocksdb" / "rows"

    assert room_of(str(gone)).free > 0


def test_folder_that_cannot_be_asked_has_no_room_whatever_is_free_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = shutil.disk_usage

    def broken(folder: Path | str) -> object:
        if Path(folder) == tmp_path:
            raise OSError(errno.EIO, "Input/output error")
        return ask(folder)

    monkeypatch.setattr(shutil, "disk_usage", broken)

    assert room_of(str(tmp_path)) == DiskRoom(0, 64 << 20)
