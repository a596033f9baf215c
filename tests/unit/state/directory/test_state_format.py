"""Formats of the state directory: adopted, brought forward, and refused where they are newer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import LockError, ProcessorStateError
from pykstreams.core.ids import TaskId
from pykstreams.state.directory import state_format
from pykstreams.state.directory.file_lock import FileLock
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.directory.state_format import FORMAT, StateFormat
from pykstreams.testing.clock import MockClock


def version(folder: Path) -> int:
    return int(json.loads((folder / "format").read_text())["version"])


def append(word: str) -> state_format.Step:
    def step(folder: Path) -> None:
        with (folder / "steps").open("a") as file:
            file.write(word)

    return step


@pytest.mark.parametrize("has_state", [True, False])
def test_a_directory_without_a_format_is_adopted_with_its_state(tmp_path: Path, has_state: bool) -> None:
    config = StreamsConfig({"application.id": "shop", "state.dir": str(tmp_path)})
    directory = StateDirectory.of(config, clock=MockClock())
    if has_state:
        (directory.lock(TaskId(0, 1)) / "rocksdb").mkdir()
        directory.unlock(TaskId(0, 1))
    directory.make(config)
    directory.make(config)

    assert version(directory.path) == 1
    assert directory.tasks() == ([TaskId(0, 1)] if has_state else [])


def test_an_earlier_format_is_brought_forward_step_by_step(tmp_path: Path) -> None:
    FORMAT.adopt(tmp_path)
    StateFormat(3, {1: append("a"), 2: append("b")}).adopt(tmp_path)

    assert (tmp_path / "steps").read_text() == "ab"
    assert version(tmp_path) == 3


def test_a_directory_without_a_format_takes_every_step(tmp_path: Path) -> None:
    StateFormat(2, {1: append("a")}).adopt(tmp_path)

    assert (tmp_path / "steps").read_text() == "a"


def test_a_step_that_fails_is_taken_again_and_those_before_it_are_not(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        StateFormat(3, {1: append("a"), 2: fail}).adopt(tmp_path)
    StateFormat(3, {1: append("a"), 2: append("b")}).adopt(tmp_path)

    assert (tmp_path / "steps").read_text() == "ab"


def test_a_newer_format_is_refused_with_the_cure(tmp_path: Path) -> None:
    StateFormat(2, {1: append("a")}).adopt(tmp_path)

    with pytest.raises(ProcessorStateError, match=r"has format 2, which a newer release .* up to 1\. Start that rel"):
        FORMAT.adopt(tmp_path)
    with pytest.raises(ProcessorStateError, match=r"set state\.dir to another folder, or delete this one"):
        FORMAT.check(tmp_path)


def test_a_file_that_says_no_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "format").write_text("rubbish")

    with pytest.raises(ProcessorStateError, match="says 'rubbish', which is no format of a state directory"):
        FORMAT.adopt(tmp_path)


def test_an_empty_file_of_a_crash_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "format").write_text("")
    FORMAT.check(tmp_path)
    FORMAT.adopt(tmp_path)

    assert version(tmp_path) == 1


def test_a_format_is_on_the_disk_before_it_has_its_name_and_the_name_is_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a crash of the machine leaves an empty file."""
    synced = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        status = os.fstat(descriptor)
        what = "folder" if os.path.samestat(status, tmp_path.stat()) else f"{status.st_size} bytes"
        synced.append((what, (tmp_path / "format").exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    FORMAT.adopt(tmp_path)

    assert synced == [("14 bytes", False), ("folder", True)]


def test_a_directory_that_another_process_brings_forward_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_format, "_LOOKS", 2)
    lock = FileLock(tmp_path / "format.lock")
    lock.take()

    with pytest.raises(LockError, match="another process is bringing the state directory"):
        FORMAT.adopt(tmp_path)
    lock.release()
    FORMAT.adopt(tmp_path)


def test_what_a_java_application_of_the_same_name_keeps_is_left_as_it_is(tmp_path: Path) -> None:
    javas = {
        "kafka-streams-process-metadata": '{"processId":"8b7e5d1c-0b7a-4c57-8f6c-0f5f5b3a6b1e"}',
        ".lock": "",
        "0_1/.checkpoint": "0\n1\nshop-counts-changelog 1 42\n",
    }
    for name, text in javas.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(text)
    config = StreamsConfig({"application.id": "shop", "state.dir": str(tmp_path), "state.cleanup.dir.max.age.ms": 0})
    directory = StateDirectory.of(config, clock=MockClock())
    directory.make(config)
    directory.process_id(lambda: "mine")
    directory.close()

    found = {path.relative_to(tmp_path / "shop").as_posix(): path for path in (tmp_path / "shop").rglob("*")}
    assert {name: path.read_text() for name, path in found.items() if path.is_file()} == javas
