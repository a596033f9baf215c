"""Reading and writing the primitives of user data: numbers are big-endian, texts and arrays have a length in front.

Invariant: bytes from others raise ``MalformedUserDataError`` or are read to their end; no count makes room for more
than there are bytes.
"""

from __future__ import annotations

import struct

from pykstreams.core.errors import TaskAssignmentError

_BYTE = struct.Struct(">b")
_SHORT = struct.Struct(">h")
_UNSIGNED_SHORT = struct.Struct(">H")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_UTF_LIMIT = 0xFFFF
_NULL = -1


class MalformedUserDataError(TaskAssignmentError):
    """Bytes of another member are no subscription or assignment that this release can read."""


class UserDataReader:
    """A position in user data.

    :param what: names the data in errors.
    """

    __slots__ = ("_at", "_data", "_what")

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self._at = 0

    def int8(self) -> int:
        return self._number(_BYTE)

    def int16(self) -> int:
        return self._number(_SHORT)

    def int32(self) -> int:
        return self._number(_INT)

    def int64(self) -> int:
        return self._number(_LONG)

    def count(self, entry_size: int) -> int:
        """The number of entries that follow, each of which takes at least so many bytes."""
        count = self.int32()
        if not 0 <= count * entry_size <= len(self._data) - self._at:
            raise self.malformed(f"{count} entries of at least {entry_size} bytes are said to follow")
        return count

    def raw(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise self.malformed(f"{size} bytes are said to follow")
        start = self._at
        self._at += size
        return self._data[start : self._at]

    def blob(self) -> bytes:
        """Bytes with their length as four bytes."""
        return self.raw(self.int32())

    def text(self) -> str:
        """UTF-8 with its length as four bytes."""
        return self._decode(self.blob())

    def optional_blob(self) -> bytes:
        """Bytes with their length as four bytes; null reads as nothing."""
        size = self.int32()
        return b"" if size == _NULL else self.raw(size)

    def short_text(self) -> str | None:
        """UTF-8 with its length as two bytes; ``None`` where it is null."""
        size = self.int16()
        return None if size == _NULL else self._decode(self.raw(size))

    def utf(self) -> str:
        """The text of a ``DataOutputStream.writeUTF``, which is UTF-8 for all that hosts and topics may be named."""
        return self._decode(self.raw(self._number(_UNSIGNED_SHORT)))

    def end(self) -> None:
        """Raises unless everything has been read."""
        if self._at != len(self._data):
            raise self.malformed(f"{len(self._data) - self._at} bytes are left over")

    def malformed(self, problem: str) -> MalformedUserDataError:
        return MalformedUserDataError(
            f"the {self._what} of {len(self._data)} bytes cannot be read at byte {self._at}: {problem}"
        )

    def _number(self, layout: struct.Struct) -> int:
        (value,) = layout.unpack(self.raw(layout.size))
        return int(value)

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self.malformed(f"{data!r} is no UTF-8") from error


class UserDataWriter:
    """User data that grows; a value that its layout cannot hold raises ``TaskAssignmentError``.

    :param what: names the data in errors.
    """

    __slots__ = ("_data", "_what")

    def __init__(self, what: str) -> None:
        self._data = bytearray()
        self._what = what

    def int8(self, value: int) -> None:
        self._number(_BYTE, value)

    def int16(self, value: int) -> None:
        self._number(_SHORT, value)

    def int32(self, value: int) -> None:
        self._number(_INT, value)

    def int64(self, value: int) -> None:
        self._number(_LONG, value)

    def raw(self, data: bytes) -> None:
        self._data += data

    def blob(self, data: bytes) -> None:
        self.int32(len(data))
        self.raw(data)

    def text(self, text: str) -> None:
        self.blob(text.encode())

    def short_text(self, text: str | None) -> None:
        if text is None:
            self.int16(_NULL)
        else:
            data = text.encode()
            self.int16(len(data))
            self.raw(data)

    def utf(self, text: str) -> None:
        data = text.encode()
        if len(data) > _UTF_LIMIT:
            raise TaskAssignmentError(f"{text[:40]!r}... takes {len(data)} bytes; a name takes {_UTF_LIMIT} at most")
        self._number(_UNSIGNED_SHORT, len(data))
        self.raw(data)

    def finish(self) -> bytes:
        return bytes(self._data)

    def _number(self, layout: struct.Struct, value: int) -> None:
        try:
            self._data += layout.pack(value)
        except struct.error as error:
            raise TaskAssignmentError(
                f"the {self._what} cannot hold {value!r} in {layout.size} bytes ({error})"
            ) from error
