"""The files of an application: which ones its script has imported, told by the process that did, and which change.

The process writes them, as JSON, into a file that the one which watches has named: path to time of change in ns and
size, as they were when the script was loaded. Where an import failed, the files in the traceback belong to them, as
what is repaired is one of these. Python itself, installed packages and pykstreams do not.

Files are looked at by ``stat``, a few times in a second. They are few, so that no library is needed for it, and it
works in containers and on shared folders, where notices of the system do not arrive.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

import pykstreams

States: TypeAlias = dict[str, list[int] | None]
"""Path to time of change and size; ``None`` for a file that is not there."""

_OWN: Final = Path(pykstreams.__file__).parent
_ELSEWHERE: Final = tuple(
    os.path.join(os.path.realpath(folder), "")
    for folder in (
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(_OWN),
        *(str(part) for part in _OWN.iterdir() if part.is_symlink()),  # in a checkout some parts lie elsewhere
    )
)


@contextmanager
def told_to(report: Path | None, topology: str) -> Iterator[None]:
    """Writes the files of the application when its script was loaded inside, or was not; nothing without ``report``.

    An error has its traceback printed: who edits the script wants to see it.
    """
    if report is None:
        yield
        return
    sys.dont_write_bytecode = True  # what Python keeps is taken for the file's if both are of the same second and size
    files = [topology.rpartition(":")[0] or topology, topology]
    try:
        yield
    except Exception as error:
        shown = error.__cause__ or error
        traceback.print_exception(shown)
        files += files_of_error(shown)
        raise
    finally:
        write_states(report, [*files, *files_of_modules(sys.modules.values())])


def files_of_modules(modules: Iterable[ModuleType]) -> list[str]:
    """The source files of modules that belong to an application."""
    found = (getattr(module, "__file__", None) for module in list(modules))
    return [file for file in found if isinstance(file, str)]


def files_of_error(error: BaseException) -> list[str]:
    """The files that an error came through, and the one that cannot be parsed."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [*files, error.filename] if isinstance(error, SyntaxError) and error.filename else files


def write_states(report: Path, files: Iterable[str]) -> None:
    """Writes those files that are Python's and of the application, whole or not at all."""
    paths = {os.path.realpath(file) for file in files if file.endswith(".py")}
    states = {path: _state(path) for path in sorted(paths) if not path.startswith(_ELSEWHERE)}
    draft = report.with_suffix(".new")
    draft.write_text(json.dumps(states), encoding="utf-8")
    draft.replace(report)


class WatchedFiles:
    """The files in a report, as they were when they were looked at last.

    :param topology: what the user has named; its file is watched before there is a report.
    """

    def __init__(self, report: Path, topology: str) -> None:
        self._report = report
        path = topology if topology.endswith(".py") else topology.rpartition(":")[0]
        self._states: States = {}
        if path.endswith(".py"):
            self._look([os.path.realpath(path)])

    def begin(self) -> None:
        """Forgets what the last process has told, before the next one is started; its files are watched on."""
        self._report.unlink(missing_ok=True)
        self._look(self._states)

    def changed(self) -> list[str]:
        """The files that have changed, come or gone since the last look, or since the process has read them."""
        if self._report.exists():
            told: States = json.loads(self._report.read_text(encoding="utf-8"))
            self._report.unlink()
            self._states |= told
        before = self._states
        self._look(before)
        return [path for path, state in self._states.items() if before[path] != state]

    def _look(self, paths: Iterable[str]) -> None:
        self._states = {path: _state(path) for path in paths}


def _state(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size]
