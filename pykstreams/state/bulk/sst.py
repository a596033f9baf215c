"""Writes sorted rows of an engine to files that a database takes over as they are.

They get the options of the store: files that are taken over stay as they were written, bloom filters and blocks
included. Memory is that of a few blocks, whatever is written. The other modules that import ``rocksdict`` are
those of the engine, ``engines/rocksdb.py``.

Invariant: within one ``SstFiles`` keys ascend over all files, and a file that ``finish`` gives is on the disk.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rocksdict import SstFileWriter

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ProcessorStateError
from pykstreams.state.bulk.folder import AnyFolder, folder_at
from pykstreams.state.engines.rocksdb import row_options
from pykstreams.state.interfaces.engine import Row
from pykstreams.state.spec import StoreBuilder

MAX_FILE_BYTES: Final = 64 << 20
_LOOK_EVERY_BYTES: Final = 256 << 10  # so many bytes of rows between two looks at the size of the file


@dataclass(frozen=True, slots=True)
class SstFile:
    """One file.

    :param path: where it is, relative to the folder of the bootstrap, with ``/``.
    :param size: how many bytes it has.
    :param first, last: its lowest and its highest key.
    """

    path: str
    rows: int
    size: int
    sha256: str
    first: bytes
    last: bytes


class SstFiles:
    """The files of one part of a store, written one after the other.

    :param root: the folder of the bootstrap.
    :param folder: where the files go, relative to it (``manifest.store_folder``).
    :param stem: how their names begin; nobody else may use it, so it carries the attempt.
    """

    def __init__(
        self,
        root: AnyFolder,
        folder: str,
        stem: str,
        builder: StoreBuilder[Any],
        config: StreamsConfig,
        max_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        self._root = folder_at(root)
        self._folder = folder
        self._stem = stem
        self._store = builder.name
        self._max_bytes = max_bytes
        prefix_bytes = getattr(builder.supplier, "prefix_bytes", None)
        self._options, self._release = row_options(builder.name, prefix_bytes, config)
        self._files: list[SstFile] = []
        self._writer: Any = None
        self._path = Path()
        self._name = ""
        self._rows = self._unseen = 0
        self._first = self._last = b""

    def add(self, rows: Iterable[Row]) -> None:
        """Writes rows whose keys ascend, from one call to the next, too; ``ProcessorStateError`` if they do not."""
        rest = iter(rows)
        while self._fill(rest):
            self._close()

    def finish(self) -> list[SstFile]:
        """Ends the last file and gives all of them, in order of their keys; none without rows."""
        if self._writer is not None:
            self._close()
        self._release()
        return self._files

    def _fill(self, rows: Iterator[Row]) -> bool:
        """Writes to the current file until it is full; false when the rows have come to their end before."""
        writer, limit, unseen, count = self._writer, self._max_bytes, self._unseen, 0
        key = self._last
        try:
            for key, packed in rows:
                if writer is None:
                    writer = self._open(key)
                writer[key] = packed
                count += 1
                unseen += len(key) + len(packed)
                if unseen >= _LOOK_EVERY_BYTES:
                    unseen = 0
                    if writer.file_size() >= limit:
                        return True
        except Exception as error:  # rocksdict raises plain Exception
            raise self._not_written(key, error) from error
        finally:
            self._rows += count
            self._unseen = unseen
            self._last = key
        return False

    def _open(self, first: bytes) -> Any:
        if self._files and first <= self._last:
            raise ValueError(f"a file of theirs ends with {self._last!r}")
        self._name = f"{self._folder}/{self._stem}-{len(self._files)}.sst"
        self._path = self._root.room(self._name)
        self._writer, self._first = SstFileWriter(self._options), first
        self._writer.open(str(self._path))
        return self._writer

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        try:
            writer.finish()
        except Exception as error:  # rocksdict raises plain Exception
            raise self._not_written(self._last, error) from error
        with self._path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
        self._root.keep(self._name)
        self._files.append(SstFile(self._name, self._rows, size, digest, self._first, self._last))
        self._rows = 0

    def _not_written(self, key: bytes, error: Exception) -> ProcessorStateError:
        return ProcessorStateError(
            f"rows of store {self._store!r} were not written to {str(self._path)!r} at key {key!r}: {error}. Keys must "
            "ascend as unsigned bytes, each once; and the disk must have room"
        )
