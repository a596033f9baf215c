"""Records as ``confluent_kafka.Producer.produce`` sends them: text becomes bytes, and other types are refused.

Test drivers pass on what it makes of a record, and errors of the client are put into words here: so a test sees what a
broker would have, and fails where the client would.

Invariant: this module and the client agree on what is refused, which
``tests/unit/runtime/clients/test_sent_records.py`` compares. A header name that is no Unicode is refused here; the
client crashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Final, SupportsIndex

from pykstreams.core.headers import Headers
from pykstreams.core.shown_values import shown

_PAIRS = "headers are pairs of name and value, such as (('source', b'web'),)"
_EARLIEST: Final = -(1 << 63)


def sent_headers(headers: object) -> Headers:
    """Returns headers as a consumer gets them; ``TypeError`` for those that the client refuses."""
    if not headers:
        return ()
    if isinstance(headers, Mapping):
        raise TypeError(f"the headers are a {type(headers).__name__}; give pairs: tuple(headers.items())")
    if not isinstance(headers, Iterable):
        raise TypeError(f"the headers are {shown(headers)}; {_PAIRS}")
    return tuple(_sent_header(header) for header in headers)


def sent_data(data: object, part: str) -> bytes | None:
    """Returns a key or value as a consumer gets it; ``TypeError`` for one that the client refuses."""
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    raise TypeError(f"the serializer of the {part} gave {_described(data)}; it must give bytes or None")


def sent_time(timestamp: object) -> int:
    """Returns a timestamp; ``TypeError`` for one that the client refuses."""
    if not isinstance(timestamp, SupportsIndex) or not _EARLIEST <= (time := index(timestamp)) < -_EARLIEST:
        raise TypeError(f"the timestamp is {_described(timestamp)}; give an int, in milliseconds since 1970")
    return time


def _sent_header(header: object) -> tuple[str, bytes | None]:
    if not isinstance(header, tuple) or len(header) != 2:
        raise TypeError(f"one of the headers is {shown(header)}; {_PAIRS}")
    name, value = header
    if isinstance(value, str):
        value = _sent_text(value)
    elif value is not None and not isinstance(value, bytes):
        raise TypeError(
            f"the value of header {name!r} is {_described(value)}; give bytes, or text, which is sent in UTF-8, or None"
        )
    return _sent_text(str(name)).decode(), value


def _described(value: object) -> str:
    return f"{type(value).__name__} {shown(value)}"


def _sent_text(text: str) -> bytes:
    """The client takes text for a C string, which ends before the first NUL."""
    return text.encode().partition(b"\0")[0]
