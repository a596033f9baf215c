"""Prints records, one line each: ``[label]: key, value`` (``PrintForeachAction.apply``, 4.3.1)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TextIO, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Headers
from pykstreams.processors.process import Process

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Print(Generic[K, V]):
    """Prints each record; it ends here.

    ``formatter(key, value)`` replaces ``key, value``. ``file`` ``None`` is whatever ``sys.stdout`` is while
    printing. A path is opened to append, by every task for itself, and written line by line, so that the
    lines of several tasks stay whole; it is closed with the task. (Kafka Streams empties the file when the
    topology is built; here a restarted worker adds to it.) A stream that the caller opened is flushed after
    each line and never closed.
    """

    label: str
    file: TextIO | str | os.PathLike[str] | None = None
    formatter: Callable[[K, V], str] | None = None

    def build(self, context: OperatorContext) -> Process:
        label, text, fail = self.label, self.formatter or _key_and_value, context.fail
        write = self._writer(context)

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                write(f"[{label}]: {text(key, value)}\n")
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return process

    def _writer(self, context: OperatorContext) -> Callable[[str], None]:
        if self.file is None:
            return _to_stdout
        if isinstance(self.file, (str, os.PathLike)):
            return _PathWriter(self.file, context).write
        return _to_stream(self.file)


class _PathWriter:
    """Owns a file from the start of the task to its end."""

    __slots__ = ("_file", "_path")

    def __init__(self, path: str | os.PathLike[str], context: OperatorContext) -> None:
        self._path = path
        context.on_init(self._open)
        context.on_close(self._close)

    def _open(self) -> None:
        # Line by line: a block buffer would cut lines in two where several tasks append to one file.
        self._file = open(self._path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed by _close

    def write(self, line: str) -> None:
        self._file.write(line)

    def _close(self) -> None:
        self._file.close()


def _key_and_value(key: object, value: object) -> str:
    return f"{key}, {value}"


def _to_stdout(line: str) -> None:
    out = sys.stdout
    out.write(line)
    out.flush()


def _to_stream(stream: TextIO) -> Callable[[str], None]:
    def write(line: str) -> None:
        stream.write(line)
        stream.flush()

    return write
