"""Values as users put and get them, by layout: alone, with their timestamp, with their headers, or with both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pykstreams.core.errors import WrongTypeError
from pykstreams.core.record import ValueAndTimestamp
from pykstreams.core.shown_values import shown
from pykstreams.core.types import Headers
from pykstreams.state.encoding.layout import HEADERS_AND_VALUE, NO_TIMESTAMP, PLAIN, TIMESTAMPED
from pykstreams.state.interfaces.session_store import AggregationWithHeaders
from pykstreams.state.interfaces.store import ValueTimestampHeaders
from pykstreams.state.layers.rows import RowCodec


class PublicValues(NamedTuple):
    """Two closures made for one open store."""

    shown: Callable[[bytes], Any]
    """Returns the user's value of a packed one."""

    packed: Callable[[object], bytes | None]
    """The packed value for what a user puts; ``None`` where that, or the value in it, is ``None``."""


def public_values(codec: RowCodec, store: str) -> PublicValues:
    """Makes the closures for the layout of the codec."""
    decode, encode, layout = codec.decode_value, codec.encode_value, codec.layout
    pack, unpack = layout.pack, layout.unpack

    def plain(packed: bytes) -> object:
        return decode(packed, ())

    def with_time(packed: bytes) -> object:
        value, timestamp, _ = unpack(packed)
        return ValueAndTimestamp(decode(value, ()), timestamp)

    def with_headers(packed: bytes) -> object:
        value, timestamp, headers = unpack(packed)
        return ValueTimestampHeaders(decode(value, headers), timestamp, headers)

    def aggregation(packed: bytes) -> object:
        value, _, headers = unpack(packed)
        return AggregationWithHeaders(decode(value, headers), headers)

    def packed_with(parts: Callable[[object, str], tuple[object, int, Headers]]) -> Callable[[object], bytes | None]:
        def packed(value: object) -> bytes | None:
            if value is None:
                return None
            inner, timestamp, headers = parts(value, store)
            data = None if inner is None else encode(inner, headers)
            return None if data is None else pack(data, timestamp, headers)

        return packed

    if layout is PLAIN:
        return PublicValues(plain, packed_with(_value_alone))
    if layout is TIMESTAMPED:
        return PublicValues(with_time, packed_with(_value_and_time))
    if layout is HEADERS_AND_VALUE:
        return PublicValues(aggregation, packed_with(_aggregation_and_headers))
    return PublicValues(with_headers, packed_with(_value_time_and_headers))


def _value_alone(value: object, store: str) -> tuple[object, int, Headers]:
    return value, NO_TIMESTAMP, ()


def _value_and_time(value: object, store: str) -> tuple[object, int, Headers]:
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int)):
        raise WrongTypeError(
            f"store {store!r} keeps timestamps and was given {shown(value)}; put ValueAndTimestamp(value, "
            "timestamp in ms)"
        )
    return value[0], value[1], ()


def _value_time_and_headers(value: object, store: str) -> tuple[object, int, Headers]:
    if not (isinstance(value, ValueTimestampHeaders) and isinstance(value.timestamp, int)):
        raise WrongTypeError(
            f"store {store!r} keeps timestamps and headers and was given {shown(value)}; put "
            "ValueTimestampHeaders(value, timestamp in ms, headers)"
        )
    return value


def _aggregation_and_headers(value: object, store: str) -> tuple[object, int, Headers]:
    if not isinstance(value, AggregationWithHeaders):
        raise WrongTypeError(
            f"store {store!r} keeps headers and was given {shown(value)}; put AggregationWithHeaders(value)"
        )
    return value.aggregation, NO_TIMESTAMP, value.headers
