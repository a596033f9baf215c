"""Quotes of CSV that would alter rows in silence, since Arrow takes them as they come.

A field in quotes that is never closed takes the rows behind it into itself, and a quote inside of one that is written
with a backslash, as Spark and MySQL do, ends it too early. So what Arrow reads is looked through on its way: a field
that begins with a quote ends with one, before a delimiter or the end of a line, and quotes in it are doubled. Quotes in
other fields are texts.
"""

from __future__ import annotations

import re
from typing import Any, Final

_QUOTED: Final = rb'"(?:[^"]++|"")*+"'
_SHOWN: Final = 60


class CheckedQuotes:
    """A stream of CSV, of which reading raises ``ValueError`` where a field in quotes does not end as it should.

    :param stream: the file, from its beginning.
    :param most: how many bytes a row may have.
    """

    def __init__(self, stream: Any, delimiter: str, most: int) -> None:
        self._stream, self._most = stream, most
        ends = re.escape(delimiter.encode()) + rb"\r\n"
        self._fields = re.compile(rb'(?:[^"]++|(?<=[%s])%s(?=[%s])|(?<![%s])")*+' % (ends, _QUOTED, ends, ends))
        self._quoted = re.compile(_QUOTED)
        self._rest = b"\n"  # from the end of the last field on that is known to be right, with the byte before it
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Reads on, as a file does."""
        chunk: bytes = self._stream.read(size)
        self._look_through(chunk or b"\n", at_end=not chunk)
        return chunk

    def close(self) -> None:
        """Does nothing: who has opened the stream closes it."""

    def _look_through(self, chunk: bytes, *, at_end: bool) -> None:
        text = self._rest + chunk
        cut = 1 + max(text.rfind(b"\n"), text.rfind(b"\r"))  # so that no quote is the first one of two
        right = self._fields.match(text, 0, cut)
        end = right.end() if right is not None else 0
        if end < cut:
            shown = repr(text[end : end + _SHOWN].decode(errors="replace"))
            if self._quoted.match(text, end, cut):
                raise ValueError(
                    f"a field goes on behind its closing quote, {shown}; a quote inside of quotes is written as two "
                    "(files with backslashes there are read by SparkRead('csv', ...))"
                )
            if at_end:
                raise ValueError(f"the quote that begins a field is never closed: {shown}")
        self._rest = text[max(end - 1, 0) :]
        if len(self._rest) > self._most:
            shown = repr(self._rest[1 : 1 + _SHOWN].decode(errors="replace"))
            raise ValueError(f"a row has more than {self._most} bytes, or a quote that is never closed: {shown}")
