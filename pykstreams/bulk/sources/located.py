"""Where a path of a user leads: on this machine, or in a file system that fsspec knows by its scheme."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pyarrow import fs

from pykstreams.core.errors import ConfigError
from pykstreams.state.bulk.folder import is_url, system_of

_LOGS: Final[Mapping[str, str]] = {"_delta_log": "delta", ".hoodie": "hudi"}


@dataclass(frozen=True)
class Located:
    """A file or a folder; it can be pickled.

    :param given: as the user wrote it.
    :param path: the same inside of the file system.
    """

    given: str
    path: str
    system: Any

    def files(self) -> list[str]:
        """The paths of the files of a folder and those below it, by name, or of the one file that it is.

        Those that are hidden, or whose names begin with ``_``, are what writers keep beside rows; ``ConfigError`` where
        there is nothing, a link that leads to nothing or back to a folder that it is in, or a table of which a log says
        which files are a part of it still.
        """
        info = self.system.get_file_info(self.path)
        if info.type == fs.FileType.NotFound:
            raise ConfigError(f"there is no file or folder {self.given!r} to read rows from")
        if info.type != fs.FileType.Directory:
            return [self.path]
        if isinstance(self.system, fs.LocalFileSystem):
            _check_links(Path(self.path))
        found = self.system.get_file_info(fs.FileSelector(self.path, recursive=True))
        table = next((kind for one in found if (kind := self._table_of_log(one.path)) is not None), None)
        if table is not None:
            raise ConfigError(
                f"{self.given!r} is the folder of a table of {table}, and may have files with rows that were replaced "
                f"or deleted there; read the table by SparkRead({table!r}, ...), or name its files that count"
            )
        return sorted(one.path for one in found if one.type == fs.FileType.File and self._shown(one.path))

    def _table_of_log(self, path: str) -> str | None:
        """The format of the table to whose log a path belongs."""
        parts = PurePosixPath(path).relative_to(self.path).parts
        if len(parts) > 1 and parts[-2] == "metadata" and parts[-1].endswith(".metadata.json"):
            return "iceberg"
        return next((kind for name, kind in _LOGS.items() if name in parts), None)

    def _shown(self, path: str) -> bool:
        parts = PurePosixPath(path).relative_to(self.path).parts
        return not any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def _check_links(folder: Path) -> None:
    """``ConfigError`` for links below a folder by which rows would be left out, or read many times."""
    for inside, folders, files in os.walk(folder):
        for link in (path for name in (*folders, *files) if (path := Path(inside, name)).is_symlink()):
            if not link.exists():
                raise ConfigError(f"{str(link)!r} is a link to {os.readlink(link)!r}, where nothing is; take it away")
            if Path(inside).resolve().is_relative_to(link.resolve()):
                raise ConfigError(
                    f"{str(link)!r} is a link to a folder that it is in, whose rows would be read again and again; "
                    "take it away"
                )


def located(path: str) -> Located:
    """Finds the file system of a path; ``ConfigError`` where nothing is installed that knows it."""
    if not is_url(path):
        return Located(path, str(Path(path).absolute()), fs.LocalFileSystem())
    system, inner = system_of(path)
    return Located(path, inner, fs.PyFileSystem(fs.FSSpecHandler(system)))
