"""How the times and values of rows are written for users."""

from __future__ import annotations

import json
from datetime import UTC, datetime


def time_text(ms: int) -> str:
    """Returns a time to read, or ms where there is no such date.

    >>> time_text(5), time_text(-(10**18))
    ('1970-01-01T00:00:00.005Z', '-1000000000000000000 ms')
    """
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return f"{ms} ms"


def cell_text(value: object) -> str:
    """Returns a key or a value that JSON has, to read: text as it is, anything else in JSON.

    >>> cell_text("tea"), cell_text({"sold": True})
    ('tea', '{"sold": true}')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plain(data: bytes) -> str:
    """The text that bytes are, or else the bytes in hexadecimal.

    >>> plain(b"tea"), plain(b"\\x00\\x01")
    ('tea', '0x0001')
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if all(char.isprintable() or char in "\n\t" for char in text) else f"0x{data.hex()}"
