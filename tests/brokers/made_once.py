"""What is fetched or made once for all runs, and kept in the cache of the user: jars, classes, formatted storage."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path


def cache_folder() -> Path:
    """The folder of all that is kept."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pykstreams-kafka"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def made_at(folder: Path) -> Iterator[Path]:
    """A folder that appears as a whole; another process may make the same, and the first one wins."""
    scratch = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        yield scratch
        with contextlib.suppress(OSError):
            scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def run(command: Sequence[str], failure: str) -> str:
    """Runs a command and returns what it prints; ``RuntimeError`` with ``failure`` and its output where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{failure}:\n{done.stdout}{done.stderr}")
    return done.stdout
