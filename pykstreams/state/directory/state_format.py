"""The format of a state directory: a number in the file ``format``, and the steps from one to the next.

The file is JSON, ``{"version": 1}``. A directory without it is from before there was one, and has format 1. What Kafka
Streams keeps lies elsewhere in ``state.dir``, and is neither read nor written.

Invariant: the file says a version only after every step up to it was taken, so a step that was interrupted is taken
again.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from pykstreams.core.errors import LockError, ProcessorStateError
from pykstreams.state.directory.durable_files import replace_file
from pykstreams.state.directory.file_lock import FileLock

log = logging.getLogger(__name__)

_NAME: Final = "format"
_FIRST: Final = 1
_LOOKS: Final = 3000
_LOOK_S: Final = 0.01

Step: TypeAlias = Callable[[Path], None]
"""Brings a directory from one format to the next; it may have been interrupted before."""


@dataclass(frozen=True, slots=True)
class StateFormat:
    """A format, and the ways to it from earlier ones.

    :param steps: the step from each earlier format to the next.
    """

    version: int
    steps: Mapping[int, Step] = field(default_factory=dict)

    def adopt(self, folder: Path) -> None:
        """Brings a directory to this format, one process at a time; ``ProcessorStateError`` for a newer one."""
        if self._is_here(folder):
            return
        lock = FileLock(folder / f"{_NAME}.lock")
        for _ in range(_LOOKS):
            if lock.take():
                break
            threading.Event().wait(_LOOK_S)  # another process takes the steps
        else:
            raise LockError(
                f"another process is bringing the state directory {str(folder)!r} to another format for more than "
                f"{_LOOKS * _LOOK_S:g} s; wait until it is done, and start again"
            )
        try:
            if not self._is_here(folder):
                self._take_steps(folder)
        finally:
            lock.release()

    def check(self, folder: Path) -> None:
        """Raises ``ProcessorStateError`` for a directory with a newer format."""
        self._is_here(folder)

    def _is_here(self, folder: Path) -> bool:
        found = _version_of(folder)
        if found is not None and found > self.version:
            raise ProcessorStateError(
                f"the state directory {str(folder)!r} has format {found}, which a newer release has written; this one "
                f"knows formats up to {self.version}. Start that release again; or set state.dir to another folder, or "
                "delete this one, and state is restored from changelogs"
            )
        return found == self.version

    def _take_steps(self, folder: Path) -> None:
        begin = _version_of(folder) or _FIRST
        for version in range(begin, self.version):
            log.info("state directory %r goes from format %d to %d", str(folder), version, version + 1)
            self.steps[version](folder)
            _write(folder, version + 1)
        if begin == self.version:
            _write(folder, begin)


FORMAT: Final = StateFormat(_FIRST)
"""The format that this release writes."""


def _version_of(folder: Path) -> int | None:
    path = folder / _NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    if not text:  # what a crash of the machine may have left of an earlier release
        return None
    try:
        return int(json.loads(text)["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise ProcessorStateError(
            f"{str(path)!r} says {text[:100]!r}, which is no format of a state directory; write back "
            f'{{"version": {_FIRST}}} if this release was the last one here, or delete the folder, and state is '
            "restored from changelogs"
        ) from error


def _write(folder: Path, version: int) -> None:
    replace_file(folder / _NAME, json.dumps({"version": version}).encode())
