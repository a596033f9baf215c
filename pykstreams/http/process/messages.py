"""The messages between the two processes: frames, each of which is one message.

A frame is its length in four bytes, a line of JSON, ``[kind, content]``, and what the content says follows it: the
bodies of answers are sent as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypedDict, cast

import orjson

from pykstreams.http.asked_keys import AskedKey
from pykstreams.http.exchange import HttpAnswer, HttpRequest

_LENGTH: Final = struct.Struct(">I")

SERVE: Final = "serve"
"""The first message to the server's process: how it has to serve."""
REQUESTS: Final = "requests"
LOOKUPS: Final = "lookups"
"""Requests for the rows of single keys, by store."""
OTHERWISE: Final = "otherwise"
"""The numbers of those that have to come again, as requests like any other."""
ANSWERS: Final = "answers"
LOG: Final = "log"
"""A line for the worker's log: level, name of the logger, and text."""
CLOSE: Final = "close"
"""It has to answer what has come, and to end."""

Numbered = tuple[int, HttpRequest]
NumberedKey = tuple[int, AskedKey]


class HowToServe(TypedDict):
    """The content of the first message."""

    options: dict[str, object]
    """The fields of ``HttpOptions``."""
    certificate: str | None
    key: str | None


class Message(NamedTuple):
    """A message of the other process."""

    kind: str
    content: object
    """JSON, whose shape its kind decides."""
    rest: bytes


class Messages:
    """Takes messages out of the bytes that come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    @property
    def missing(self) -> int:
        """How many bytes the next message lacks, as far as that is known: so many have none of the one behind it."""
        if len(self._bytes) < _LENGTH.size:
            return _LENGTH.size - len(self._bytes)
        return _LENGTH.size + int(_LENGTH.unpack_from(self._bytes)[0]) - len(self._bytes)

    def of(self, data: bytes) -> Iterator[Message]:
        """The messages that these bytes complete, in their order."""
        self._bytes += data
        begin = 0
        try:
            while len(self._bytes) - begin >= _LENGTH.size:
                start = begin + _LENGTH.size
                end = start + _LENGTH.unpack_from(self._bytes, begin)[0]
                if len(self._bytes) < end:
                    break
                line, _, rest = bytes(self._bytes[start:end]).partition(b"\n")
                kind, content = orjson.loads(line)
                begin = end
                yield Message(kind, content, rest)
        finally:  # also where the reader fails
            del self._bytes[:begin]


def frame(kind: str, content: object = None, rest: bytes = b"") -> bytes:
    """The bytes of a message."""
    line = orjson.dumps([kind, content])
    return b"".join((_LENGTH.pack(len(line) + 1 + len(rest)), line, b"\n", rest))


def requests_frame(requests: Sequence[Numbered]) -> bytes:
    """The message with some requests.

    >>> list(requests_of(next(Messages().of(requests_frame([(7, HttpRequest("/stores", "/stores", "", ""))])))))
    [(7, HttpRequest(path='/stores', place='/stores', query='', authorization=''))]
    """
    return frame(REQUESTS, [[number, one.path, one.query, one.authorization] for number, one in requests])


def requests_of(message: Message) -> Iterator[Numbered]:
    """The requests of a message."""
    for number, path, query, authorization in cast("list[tuple[int, str, str, str]]", message.content):
        yield number, HttpRequest(path, path, query, authorization)


def lookups_frame(lookups: Mapping[str, Sequence[NumberedKey]]) -> bytes:
    """The message with some keys that are asked for, by store.

    >>> list(lookups_of(next(Messages().of(lookups_frame({"prices": [(7, AskedKey("prices", "tea"))]})))))
    [('prices', [(7, AskedKey(store='prices', text='tea', as_of=None))])]
    """
    content = {store: [[number, one.text, one.as_of] for number, one in some] for store, some in lookups.items()}
    return frame(LOOKUPS, content)


def lookups_of(message: Message) -> Iterator[tuple[str, list[NumberedKey]]]:
    """The keys of a message, by store."""
    content = cast("dict[str, list[tuple[int, str, int | None]]]", message.content)
    for store, some in content.items():
        yield store, [(number, AskedKey(store, text, as_of)) for number, text, as_of in some]


def answers_frame(answers: Sequence[tuple[int, HttpAnswer]]) -> bytes:
    """The message with some answers."""
    heads = [[number, one.status, one.headers, len(one.body)] for number, one in answers]
    return frame(ANSWERS, heads, b"".join(one.body for _, one in answers))


def answers_of(message: Message) -> Iterator[tuple[int, HttpAnswer]]:
    """The answers of a message."""
    begin = 0
    for number, status, headers, length in cast("list[tuple[int, int, dict[str, str], int]]", message.content):
        yield number, HttpAnswer(status, headers, message.rest[begin : begin + length])
        begin += length
