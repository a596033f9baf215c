"""The rows of a record cache, as bytes or as objects, each with the context of the record that put it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from sys import intern
from typing import Any, Final, TypeAlias
from uuid import UUID

from pykstreams.core.types import Headers
from pykstreams.state.encoding.record_context import Origin, RawContext

UNSET: Final[Any] = object()
"""Stands where an entry has no object, or no bytes."""

IMMUTABLE: Final = frozenset((int, float, str, bytes, bool, Decimal, UUID, date, datetime))
"""Types of values that may be handed out as they are."""


class CacheEntry:
    """One key of a cache. A ``None`` in ``packed`` is a delete.

    While it is not written through it has the context of the record that put it: where that came from (``topic`` is
    ``None`` for a punctuator), its time and its headers. Not the message itself, whose key and value would stay in
    memory for as long; ``message`` is there only where an exception handler or an operator may ask for them.
    ``headers`` is ``None`` when there is no context.
    """

    __slots__ = (
        "dirty",
        "headers",
        "key",
        "live",
        "message",
        "offset",
        "packed",
        "partition",
        "size",
        "tick",
        "time",
        "timestamp",
        "topic",
        "value",
    )

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.value: object = UNSET
        self.packed: bytes | None = UNSET
        self.timestamp = 0
        self.message: object = None
        self.topic: str | None = None
        self.partition = -1
        self.offset = -1
        self.time = -1
        self.headers: Headers | None = None
        self.dirty = False
        self.live = True
        self.size = 0
        self.tick = 0

    def take_context(self) -> RawContext | None:
        """Returns the context, and forgets it."""
        headers, message, self.headers, self.message = self.headers, self.message, None, None
        if headers is None:
            return None
        if message is None and self.topic is not None:
            message = Origin(self.topic, self.partition, self.offset)
        return message, self.time, headers


NoteContext: TypeAlias = Callable[[CacheEntry, Any], None]
"""Keeps the context of the record that puts an entry."""


def note_place(entry: CacheEntry, raw: RawContext) -> None:
    """Keeps where the record came from, its time and its headers.

    Topics are interned: a client makes a new text for each message.
    """
    message, entry.time, entry.headers = raw
    if message is None:
        entry.topic = None
    else:
        entry.topic = intern(message.topic())
        entry.partition = message.partition()
        entry.offset = message.offset()


def note_message(entry: CacheEntry, raw: RawContext) -> None:
    """Keeps the whole message besides, for those that may ask for its key and value."""
    note_place(entry, raw)
    entry.message = raw[0]
