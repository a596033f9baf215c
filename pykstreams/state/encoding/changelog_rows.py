"""Rows of a changelog as stores take them: a column of keys, and beside it the records as the client gave them.

A layout asks each record for what it keeps, and for nothing else: making what is not kept (a timestamp, headers) takes
as long as writing the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, overload

from pykstreams.core.types import Headers
from pykstreams.state.interfaces.store import ChangelogRow


class ChangelogRecord(Protocol):
    """The fields of a record besides its key, as a client's message has them."""

    def value(self) -> bytes | None:
        """The value; ``None`` deletes the row."""
        ...

    def timestamp(self) -> tuple[int, int]:
        """The kind of its time, and the time in ms."""
        ...

    def headers(self) -> Headers | None:
        """The headers, ``None`` without any."""
        ...


class ChangelogColumns(Sequence[ChangelogRow]):
    """Rows in the order of their changelog.

    :param keys: those of the rows, which need not be those of the records.
    """

    def __init__(self, keys: Sequence[bytes], records: Sequence[ChangelogRecord]) -> None:
        self.keys = keys
        self.records = records

    @classmethod
    def of(cls, rows: Sequence[ChangelogRow]) -> ChangelogColumns:
        """Divides rows into columns.

        >>> list(ChangelogColumns.of([(b"a", b"1", 7, ())]))
        [(b'a', b'1', 7, ())]
        """
        if isinstance(rows, ChangelogColumns):
            return rows
        return cls([row[0] for row in rows], [_RecordOfRow(row) for row in rows])

    def with_keys(self, keys: Sequence[bytes]) -> ChangelogColumns:
        """The same rows by other keys."""
        return ChangelogColumns(keys, self.records)

    @property
    def values(self) -> list[bytes | None]:
        """The column of values, made anew."""
        return [record.value() for record in self.records]

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[ChangelogRow]:
        for key, record in zip(self.keys, self.records, strict=True):
            yield key, record.value(), record.timestamp()[1], record.headers() or ()

    @overload
    def __getitem__(self, index: int) -> ChangelogRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[ChangelogRow]: ...

    def __getitem__(self, index: int | slice) -> ChangelogRow | list[ChangelogRow]:
        return list(self)[index]


class _RecordOfRow:
    """A row that is asked like a message."""

    __slots__ = ("_row",)

    def __init__(self, row: ChangelogRow) -> None:
        self._row = row

    def value(self) -> bytes | None:
        return self._row[1]

    def timestamp(self) -> tuple[int, int]:
        return 0, self._row[2]

    def headers(self) -> Headers:
        return self._row[3]
