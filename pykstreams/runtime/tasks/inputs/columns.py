"""Batches of one partition, taken apart into columns, so that what C does for many records is not done for each.

Invariant: reading ahead cannot be seen. Keys and values are read ahead only where their deserializers allow it, in
batches that are small in bytes; a batch in which one of them cannot be read stays in bytes, so that the error comes
when its record does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Final, TypeAlias, cast

from pykstreams.core.types import ColumnReader, Headers
from pykstreams.runtime.clients.consumers.messages import RecordMessage

Row: TypeAlias = tuple[RecordMessage, Any, Any, int, Headers]
"""(message, key, value, timestamp that it carries, headers) of a record."""

AT_ONCE: Final = 50
"""Records that are read ahead together: few, so that what was read is still in the processor's cache by its turn."""

READ_AHEAD_BYTES: Final = 1 << 20
"""How large the values of a batch may be that is read ahead; what is read of them may take ten times that."""

_TIME: Final = itemgetter(1)


class Columns:
    """Takes batches apart; those of one call are of one class.

    :param read_keys: reads many keys at once, ``None`` where they must be read one by one.
    :param read_values: the same for values.
    """

    __slots__ = ("_read_keys", "_read_values")

    def __init__(self, read_keys: ColumnReader | None, read_values: ColumnReader | None) -> None:
        self._read_keys = read_keys
        self._read_values = read_values

    def rows(self, batch: Sequence[RecordMessage]) -> tuple[Iterable[Row], bool]:
        """Returns the records in order, and whether their keys and values have been read; otherwise they are bytes."""
        kind = type(batch[0])  # its methods are called without a look-up for each record
        keys: Sequence[Any] = [*map(kind.key, batch)]
        values: Sequence[Any] = [*map(kind.value, batch)]
        found = [*map(kind.headers, batch)]
        headers: Iterable[Headers] = [each or () for each in found] if any(found) else repeat(())
        times = map(_TIME, map(kind.timestamp, batch))
        read = self._read(keys, values)
        if read is None:
            return zip(batch, keys, values, times, headers, strict=False), False
        return zip(batch, *read, times, headers, strict=False), True

    def _read(
        self, keys: Sequence[bytes | None], values: Sequence[bytes | None]
    ) -> tuple[Sequence[object], Sequence[object]] | None:
        """Reads both columns; ``None`` where that is to be done one by one."""
        if self._read_keys is None or self._read_values is None:
            return None
        some_keys, some_values = _without_nulls(keys), _without_nulls(values)
        if sum(map(len, some_values)) > READ_AHEAD_BYTES:
            return None
        try:
            read_keys, read_values = [*self._read_keys(some_keys)], [*self._read_values(some_values)]
        except Exception:  # one by one it is found out which record it is, and somebody answers for it
            return None
        return _with_nulls(read_keys, keys), _with_nulls(read_values, values)


def _without_nulls(column: Sequence[bytes | None]) -> Sequence[bytes]:
    if all(column):  # quick, and true of most
        return cast("Sequence[bytes]", column)
    return [data for data in column if data is not None]


def _with_nulls(read: list[object], column: Sequence[bytes | None]) -> Sequence[object]:
    """Puts ``None`` where the column that was read has it."""
    if len(read) == len(column):
        return read
    rest = iter(read)
    return [None if data is None else next(rest) for data in column]
