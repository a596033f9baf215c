"""Keys and values of records in messages and logs: cut, and hidden where an application wants so.

``log.record.values=false`` of one application hides those of its process from its start to its end, since serializers,
stores and steps do not know whose record they have. What the exceptions of users' functions say stays as it is.
"""

from __future__ import annotations

from typing import Final, TypeVar

from pykstreams.core.errors import SerdeError

E = TypeVar("E", bound=BaseException)

_SHOWN_CHARACTERS: Final = 120
_SHOWN_BYTES: Final = 16
_BETWEEN_LINES: Final = str.maketrans("", "", "\r\n\t")
_hiding: set[int] = set()
"""Who wants values hidden, by identity."""


def hide_values(owner: object) -> None:
    """Hides values until the owner calls ``show_values``."""
    _hiding.add(id(owner))


def show_values(owner: object) -> None:
    """Undoes what ``hide_values`` did for that owner; nothing happens if it did nothing."""
    _hiding.discard(id(owner))


def shown(value: object) -> str:
    """Returns a value for a message: its ``repr``, cut, or only its type where values are hidden.

    >>> shown("x" * 200)[110:]
    'xxxxxxxxxx...'
    """
    if _hiding:
        return f"<{type(value).__name__} hidden>"
    try:
        text = repr(value)
    except Exception as error:  # a user's __repr__ must not hide the error that is being reported
        text = f"<a value whose repr raised {type(error).__name__}>"
    return cut(text)


def shown_bytes(data: object) -> str:
    """Returns bytes for a message: how many, and the first of them in hex unless values are hidden."""
    if not isinstance(data, bytes | bytearray | memoryview):
        return f"{shown(data)} (no bytes)"
    if _hiding or not data:
        return f"{len(data)} bytes"
    start = bytes(data[:_SHOWN_BYTES]).hex()
    return f"{len(data)} bytes (hex {start}...)" if len(data) > _SHOWN_BYTES else f"{len(data)} bytes (hex {start})"


def shown_text(data: object) -> str:
    """Returns bytes for a message that should be text: how many, and the text, cut; else as ``shown_bytes``.

    >>> shown_text(b'{"id":5}')
    '8 bytes (\\'{"id":5}\\')'
    """
    if _hiding or not data or not isinstance(data, bytes | bytearray | memoryview):
        return shown_bytes(data)
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError:
        return shown_bytes(data)
    if not text.translate(_BETWEEN_LINES).isprintable():
        return shown_bytes(data)
    return f"{len(data)} bytes ({cut(repr(text))})"


def cut(text: str, characters: int = _SHOWN_CHARACTERS) -> str:
    """Returns a text that is no longer than so many characters, and dots where it was."""
    return text if len(text) <= characters else f"{text[:characters]}..."


def reason(why: str) -> str:
    """Returns why a value was refused, without what a library says of it where values are hidden.

    Such a text is the name of an exception, a colon, and what it says.
    """
    return why.partition(":")[0] if _hiding else why


def without_values(error: E) -> E:
    """Returns an error; where values are hidden, serde errors lose their causes, in whose texts values may be."""
    found: BaseException | None = error
    while _hiding and found is not None:
        if isinstance(found, SerdeError) and not isinstance(found.__cause__, SerdeError):
            found.__cause__, found.__suppress_context__ = None, True
        found = found.__cause__
    return error


def with_noun(count: int | None, noun: str) -> str:
    """Returns a number with a noun whose plural has an "s".

    >>> with_noun(1, "partition"), with_noun(3, "partition")
    ('1 partition', '3 partitions')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
