"""Rows of a changelog, column by column: a store reads the columns that it keeps, and the others are never made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

from pykstreams.core.types import Headers
from pykstreams.state.store import ChangelogRow


class ChangelogColumns(Sequence[ChangelogRow]):
    """Rows in the order of their changelog.

    :param timestamps: makes the column of timestamps in ms.
    :param headers: makes the column of headers, ``None`` for a row without.
    """

    def __init__(
        self,
        keys: Sequence[bytes],
        values: Sequence[bytes | None],
        timestamps: Callable[[], Iterable[int]],
        headers: Callable[[], Iterable[Headers | None]],
    ) -> None:
        self.keys = keys
        self.values = values
        self.timestamps = timestamps
        self.headers = headers

    @classmethod
    def of(cls, rows: Sequence[ChangelogRow]) -> ChangelogColumns:
        """Takes rows apart.

        >>> list(ChangelogColumns.of([(b"a", b"1", 7, ())]))
        [(b'a', b'1', 7, ())]
        """
        if isinstance(rows, ChangelogColumns):
            return rows
        return cls(
            [row[0] for row in rows],
            [row[1] for row in rows],
            lambda: [row[2] for row in rows],
            lambda: [row[3] for row in rows],
        )

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[ChangelogRow]:
        for key, value, timestamp, headers in zip(
            self.keys, self.values, self.timestamps(), self.headers(), strict=True
        ):
            yield key, value, timestamp, headers or ()

    @overload
    def __getitem__(self, index: int) -> ChangelogRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[ChangelogRow]: ...

    def __getitem__(self, index: int | slice) -> ChangelogRow | list[ChangelogRow]:
        return list(self)[index]
