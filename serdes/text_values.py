"""Times and decimal numbers as text: ISO 8601, and the digits.

Text as a key has one form for equal values, since records of a key must be in one partition.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Final, Generic, TypeVar

from pykstreams.core.types import Decoder, Headers
from pykstreams.serdes.base import CompiledSerde, EncoderOf, refused_text, refused_value, wrong_type

T = TypeVar("T", date, time, datetime, Decimal)

_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_SECOND: Final = timedelta(seconds=1)
_DAY_SECONDS: Final = 24 * 3600


class TextSerde(CompiledSerde[T], Generic[T]):
    """Values of one type as text in UTF-8; ``None`` has no bytes.

    A ``datetime``, ``date`` or ``time`` is written as by ``isoformat()``, a ``Decimal`` as by ``str()``. With
    ``is_key`` equal values have equal bytes: a ``datetime`` or ``time`` with a time zone is written in UTC, and a
    ``Decimal`` without zeros at its end.

    >>> TextSerde(Decimal).serialize("topic", Decimal("1.50"))
    b'1.50'
    >>> TextSerde(Decimal, is_key=True).serialize("topic", Decimal("1.50"))
    b'1.5'
    """

    def __init__(self, type_: type[T], *, is_key: bool = False) -> None:
        self._type: type[T] = type_
        self._is_key = is_key
        self._text: Callable[[T], str] = _one_text if is_key else _text

    def __repr__(self) -> str:
        return f"TextSerde({self._type.__name__}{', is_key=True' if self._is_key else ''})"

    @property
    def type_(self) -> type[T]:
        """The type of the values."""
        return self._type

    def writes_as(self, other: object) -> bool:
        return type(other) is TextSerde and (other._type, other._is_key) == (self._type, self._is_key)

    def encoder(self, topic: str) -> EncoderOf[T]:
        type_, text = self._type, self._text

        def encode(data: T | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            if type(data) is not type_:
                raise wrong_type(repr(self), topic, data, type_.__name__)
            try:
                return text(data).encode()
            except ValueError as error:
                raise refused_value(repr(self), topic, data, str(error)) from error

        return encode

    def decoder(self, topic: str) -> Decoder:
        type_ = self._type
        parse = Decimal if issubclass(type_, Decimal) else type_.fromisoformat

        def decode(data: bytes | None, headers: Headers) -> object:
            if data is None:
                return None
            try:
                return parse(data.decode())
            except (ValueError, decimal.InvalidOperation, AttributeError) as error:
                raise refused_text(repr(self), topic, data, f"expected a {type_.__name__} as text") from error

        return decode


def one_datetime(value: datetime) -> datetime:
    """Returns the same moment in UTC; the value itself if it is so, or has no time zone.

    ``ValueError`` for a year out of range.
    """
    if not value.utcoffset():
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("the year of this time in UTC is out of range") from error


def one_time(value: time) -> time:
    """Returns the equal time in UTC; the value itself if it is so, or has no time zone.

    A time of day that lies on another day in UTC equals none there: of those that it equals, ``00:30+01:00`` and
    ``00:00+00:30``, the one whose own time is next to UTC's day is returned.
    """
    offset = value.utcoffset()
    if not offset:
        return value
    seconds = value.hour * 3600 + value.minute * 60 + value.second - offset // _SECOND
    in_day = min(max(seconds, 0), _DAY_SECONDS - 1)
    zone = UTC if in_day == seconds else timezone((in_day - seconds) * _SECOND)
    return time(in_day // 3600, in_day // 60 % 60, in_day % 60, value.microsecond, zone)


def one_decimal(value: Decimal) -> Decimal:
    """Returns the same number without zeros at its end; ``ValueError`` for one that is not equal to itself."""
    if value.is_nan():
        raise ValueError("a key must be equal to itself, which NaN is not")
    return _EXACT.normalize(value) if value else Decimal(0)


def _text(value: date | time | Decimal) -> str:
    return str(value) if isinstance(value, Decimal) else value.isoformat()


def _one_text(value: date | time | Decimal) -> str:
    if isinstance(value, Decimal):
        return str(one_decimal(value))
    if isinstance(value, datetime):
        return one_datetime(value).isoformat()
    return (one_time(value) if isinstance(value, time) else value).isoformat()
