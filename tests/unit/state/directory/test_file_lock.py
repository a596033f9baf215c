"""Locks on files, between processes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pykstreams.state.directory.file_lock import FileLock

FORKS = """
import os, sys
from pathlib import Path
from pykstreams.state.directory.file_lock import FileLock

path = Path(sys.argv[1])
lock = FileLock(path)
taken = [lock.take()]
(in_child, told_by_parent), (told_by_child, from_child) = os.pipe(), os.pipe()
child = os.fork()
if not child:
    os.close(told_by_parent)
    os.write(from_child, b"1")
    os.read(in_child, 1)  # lives on after its parent has let go
    os._exit(0)
os.read(told_by_child, 1)
taken.append(FileLock(path).take())
lock.release()
taken.append(FileLock(path).take())
os.close(told_by_parent)
os.waitpid(child, 0)
print(*taken)
"""


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert (one.take("me"), other.take(), other.content()) == (True, False, "me")

    one.release()
    assert other.take()
    other.release()


def test_a_process_that_is_forked_keeps_no_lock_of_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKS, str(tmp_path / "lock")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout.split() == ["True", "False", "True"], "the parent has it until it lets go, then anybody may"


@pytest.mark.parametrize("shared", [False, True])
def test_a_lock_that_nobody_can_take_is_not_taken_for_one_that_another_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    (tmp_path / "lock").touch()
    monkeypatch.setattr("fcntl.flock", refuse)
    lock = FileLock(tmp_path / "lock")

    with pytest.raises(OSError, match="No locks available") as refused:
        lock.share() if shared else lock.take()
    assert refused.value.filename == str(tmp_path / "lock")
