"""Composed keys: what makes a window or session store out of a sorted map of bytes.

Big-endian, with the widths in bytes::

    window    prefix (8) | key | start (8) | sequence (4)        WindowKeySchema, 4.3.1
    session   prefix (8) | key | end (8) | start (8)             SessionKeySchema, 4.3.1

The prefix is the time that decides how long a row is kept (start of a window, end of a session) divided by
``prefix_ms``: rows are read by segment and then by key, or, with 1 ms, by time and then by key. Changelogs hold the
same keys without the prefix. The sequence is 0 except in stores that retain duplicates.

Invariant: times are not negative, so that their bytes sort as they do.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeAlias

PREFIX_BYTES: Final = 8
WINDOW_KEY_PART: Final = slice(8, -12)
KEY_AND_START: Final = slice(8, -4)
"""A key in a time window as ``TimeWindowedSerializer`` writes it."""
SESSION_KEY_PART: Final = slice(8, -16)
KEY_AND_TIMES: Final = slice(8, None)
"""A key in a session as ``SessionWindowedSerializer`` writes it."""
LAST_TIME: Final = 2**63 - 1
LAST_SEQUENCE: Final = 2**31 - 1

_LONG: Final = struct.Struct(">q")
_WINDOW: Final = struct.Struct(">qi")
_SESSION: Final = struct.Struct(">qq")

ComposeWindow: TypeAlias = Callable[[bytes, int], bytes]
"""(serialized key, start) -> composed key with the sequence 0."""


class KeySchema(Protocol):
    """The facts about composed keys that an engine needs."""

    @property
    def prefix_ms(self) -> int:
        """How many milliseconds share a prefix."""
        ...

    @property
    def time_at(self) -> slice:
        """Where a key has the time that decides how long a row is kept; its bytes sort as times do."""
        ...

    def time_of(self, composed: bytes, /) -> int:
        """That time."""
        ...

    def composed(self, logged: Iterable[bytes], /) -> list[bytes]:
        """Adds the prefix to keys of a changelog."""
        ...


def prefix_of(number: int) -> bytes:
    """The prefix of a segment, or of a time.

    >>> prefix_of(258).hex()
    '0000000000000102'
    """
    return _LONG.pack(number)


def number_of(composed: bytes) -> int:
    """The number of the segment that a composed key starts with."""
    return int(_LONG.unpack_from(composed)[0])


class WindowKeySchema:
    """Keys of window stores.

    >>> schema = WindowKeySchema(60_000)
    >>> schema.pack(b"a", 61_000).hex(" ", -8)
    '0000000000000001 61000000000000ee 4800000000'
    >>> schema.unpack(schema.pack(b"a", 61_000, 7))
    (b'a', 61000, 7)
    """

    time_at = slice(-12, -4)

    def __init__(self, prefix_ms: int) -> None:
        self.prefix_ms = prefix_ms

    def pack(self, key: bytes, start: int, sequence: int = 0) -> bytes:
        """Composes a key."""
        return _LONG.pack(start // self.prefix_ms) + key + _WINDOW.pack(start, sequence)

    def packer(self) -> ComposeWindow:
        """Makes a function that composes keys; it is quick where the start is that of the call before."""
        prefix_ms, long, window = self.prefix_ms, _LONG.pack, _WINDOW.pack
        last = -1
        before = after = b""

        def pack(key: bytes, start: int) -> bytes:
            nonlocal last, before, after
            if start != last:
                before, after = long(start // prefix_ms), window(start, 0)
                last = start
            return before + key + after

        return pack

    def unpack(self, composed: bytes) -> tuple[bytes, int, int]:
        """Divides a key: serialized key, start, sequence."""
        start, sequence = _WINDOW.unpack(composed[-12:])
        return composed[8:-12], start, sequence

    def time_of(self, composed: bytes) -> int:
        time: int = _LONG.unpack_from(composed, -12)[0]
        return time

    def composed(self, logged: Iterable[bytes]) -> list[bytes]:
        prefix_ms, long, time = self.prefix_ms, _LONG.pack, _LONG.unpack
        return [long(time(key[-12:-4])[0] // prefix_ms) + key for key in logged]


class SessionKeySchema:
    """Keys of session stores.

    >>> schema = SessionKeySchema(1)
    >>> schema.unpack(schema.pack(b"a", 10, 25))
    (b'a', 10, 25)
    """

    time_at = slice(-16, -8)

    def __init__(self, prefix_ms: int) -> None:
        self.prefix_ms = prefix_ms

    def pack(self, key: bytes, start: int, end: int) -> bytes:
        """Composes a key."""
        return _LONG.pack(end // self.prefix_ms) + key + _SESSION.pack(end, start)

    def unpack(self, composed: bytes) -> tuple[bytes, int, int]:
        """Divides a key: serialized key, start, end."""
        end, start = _SESSION.unpack(composed[-16:])
        return composed[8:-16], start, end

    def time_of(self, composed: bytes) -> int:
        time: int = _LONG.unpack_from(composed, -16)[0]
        return time

    def composed(self, logged: Iterable[bytes]) -> list[bytes]:
        prefix_ms, long, time = self.prefix_ms, _LONG.pack, _LONG.unpack
        return [long(time(key[-16:-8])[0] // prefix_ms) + key for key in logged]
