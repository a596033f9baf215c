"""Where a path of a user leads: on this machine, or in a file system that fsspec knows by its scheme.

Spark reads its paths by file systems of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyarrow import fs

from pykstreams.core.errors import ConfigError
from pykstreams.state.bulk.folder import is_url, system_of


@dataclass(frozen=True)
class Located:
    """A file or a folder; it can be pickled.

    :param given: as the user wrote it.
    :param path: the same inside of the file system.
    """

    given: str
    path: str
    system: Any

    def check(self) -> None:
        """``ConfigError`` where there is nothing."""
        if self._info.type == fs.FileType.NotFound:
            raise ConfigError(f"there is no file or folder {self.given!r} to read rows from")

    def files(self, suffix: str = "") -> list[str]:
        """The files of a folder and those below it whose names end so, in order; of a file, its own path."""
        if self._info.type != fs.FileType.Directory:
            return [self.path]
        found = self.system.get_file_info(fs.FileSelector(self.path, recursive=True))
        return sorted(one.path for one in found if one.type == fs.FileType.File and one.path.endswith(suffix))

    @property
    def _info(self) -> Any:
        return self.system.get_file_info(self.path)


def located(path: str) -> Located:
    """Finds the file system of a path; ``ConfigError`` where nothing is installed that knows it."""
    if not is_url(path):
        return Located(path, path, fs.LocalFileSystem())
    system, inner = system_of(path)
    return Located(path, inner, fs.PyFileSystem(fs.FSSpecHandler(system)))
