"""The folder of a bootstrap, wherever it lies: on this machine, or in a file system that fsspec knows (``s3://...``).

Names of files in it are relative, with ``/``. A file is written on this machine first (``room``), since whoever writes
it needs a file that can be read again, and then kept.

Invariant: what ``publish`` writes is there whole or not at all; no other file is ever written to twice.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from io import BufferedReader
from pathlib import Path, PurePath
from typing import Any, Final, Protocol, TypeAlias, cast, runtime_checkable

from pykstreams.core.errors import ConfigError
from pykstreams.state.directory.durable_files import sync_folder

MANIFEST: Final = "manifest.json"
"""The file that makes a folder a bootstrap."""
BESIDE: Final = ("rejects", "records")
"""Folders that jobs write to and the manifest does not name."""
_SCHEME: Final = "://"
UNFINISHED: Final = ".unfinished-"
"""How the name begins of what ``publish`` writes on this machine, until it is whole."""
_NO_LINK: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS})


@runtime_checkable
class Folder(Protocol):
    """A folder; ``FileNotFoundError`` for a name that it does not have."""

    @property
    def local(self) -> Path | None:
        """The folder itself, if it is on this machine, or mounted."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        ...

    def names(self) -> list[str]:
        """The names of all files, in order."""
        ...

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        ...

    def open(self, name: str) -> BufferedReader:
        """Opens a file to be read."""
        ...

    def room(self, name: str) -> Path:
        """Where a process of this machine writes a file of that name."""
        ...

    def keep(self, name: str) -> None:
        """Notes what was written there, and is on the disk."""
        ...

    def publish(self, name: str, content: bytes) -> None:
        """Writes a small file at once, and returns when it will stay."""
        ...

    def bring(self, name: str, target: Path) -> None:
        """Makes a file of this machine of it: a link where that is possible, or else a copy."""
        ...

    def delete(self, name: str) -> None:
        """Deletes a file."""
        ...


AnyFolder: TypeAlias = Folder | str | PurePath
"""A folder, or its path or URL."""


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine, or one that is mounted."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def local(self) -> Path:
        return self.path

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def names(self) -> list[str]:
        return sorted(path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file())

    def size(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def open(self, name: str) -> BufferedReader:
        return (self.path / name).open("rb")

    def room(self, name: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def keep(self, name: str) -> None:
        """It is there already."""

    def publish(self, name: str, content: bytes) -> None:
        path = self.room(name)
        unfinished = path.with_name(f"{UNFINISHED}{name}-{os.urandom(8).hex()}")
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        for folder in filter(Path.is_dir, self.path.rglob("*")):  # the names of the files that this one stands for
            sync_folder(folder)
        unfinished.rename(path)
        sync_folder(self.path)

    def bring(self, name: str, target: Path) -> None:
        source = self.path / name
        try:
            os.link(source, target)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            shutil.copyfile(source, target)

    def delete(self, name: str) -> None:
        (self.path / name).unlink()


@dataclass(frozen=True)
class RemoteFolder:
    """A folder that fsspec reaches. A file is written at once there, as stores of objects do it."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def local(self) -> None:
        return None

    def has(self, name: str) -> bool:
        return bool(self._system.isfile(self._path(name)))

    def names(self) -> list[str]:
        system, path = system_of(self.url)
        return sorted(found.removeprefix(f"{path}/") for found in system.find(path))

    def size(self, name: str) -> int:
        return int(self._system.info(self._path(name))["size"])

    def open(self, name: str) -> BufferedReader:
        return cast("BufferedReader", self._system.open(self._path(name), "rb"))

    def room(self, name: str) -> Path:
        path = Path(_waiting_room().name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def keep(self, name: str) -> None:
        room, path = self.room(name), self._path(name)
        self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._system.put_file(str(room), path)
        room.unlink()

    def publish(self, name: str, content: bytes) -> None:
        self._system.pipe_file(self._path(name), content)

    def bring(self, name: str, target: Path) -> None:
        self._system.get_file(self._path(name), str(target))

    def delete(self, name: str) -> None:
        self._system.rm_file(self._path(name))

    @property
    def _system(self) -> Any:
        return system_of(self.url)[0]

    def _path(self, name: str) -> str:
        return f"{system_of(self.url)[1]}/{name}"


def folder_at(where: AnyFolder) -> Folder:
    """The folder that a path or a URL names."""
    if not isinstance(where, str | PurePath):
        return where
    return RemoteFolder(where) if isinstance(where, str) and is_url(where) else LocalFolder(Path(where))


def is_url(path: object) -> bool:
    """Whether a path names a file system.

    >>> is_url("s3://bucket/shop"), is_url("/data/shop")
    (True, False)
    """
    return _SCHEME in str(path)


def system_of(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it; ``ConfigError`` where nothing is installed that knows it.

    Credentials and the like come from the environment, or from fsspec's own configuration.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ConfigError(
            f"{url!r} is in no file system of this machine, and fsspec, which finds others, is not installed: pip "
            "install fsspec, and the package of that file system (s3fs, gcsfs, adlfs)"
        ) from error
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"no file system is found for {url!r}: {error}") from error
    return system, str(path).rstrip("/")


@cache
def _waiting_room() -> tempfile.TemporaryDirectory[str]:
    """Where this process writes what goes elsewhere."""
    return tempfile.TemporaryDirectory(prefix="pykstreams-")
