"""The target of a job as stages use it: encodes one row of a user, and folds sorted rows into changelog rows.

Invariant: nothing here depends on where rows come from, in which order they are encoded, or how often: what is folded
is sorted, and the fold of equal rows is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import NamedTuple, Protocol, TypeAlias

from pykstreams.bulk.application import StorePlace
from pykstreams.bulk.sources.rows import RowParts
from pykstreams.core.errors import StreamsError
from pykstreams.core.types import Headers
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.interfaces.store import ChangelogRow


class EncodedRow(NamedTuple):
    """A row on its way from the stage that encodes to the one that folds."""

    key: bytes
    time: int
    value: bytes | None
    headers: Headers


Add: TypeAlias = Callable[[int, bytes, int, "bytes | None", Headers], None]
"""(partition, key, time in ms, value, headers): takes an encoded row"""

EncodeRow: TypeAlias = Callable[[RowParts, Add], None]
"""Encodes one row, into none, one or several; raises for one that cannot be taken, before it has added any."""

Refuse: TypeAlias = Callable[[Exception, EncodedRow], None]
"""Takes a row that the fold cannot take; returns where the user wants the job to go on."""

FoldRows: TypeAlias = Callable[[Iterator[EncodedRow], Refuse], Iterator[ChangelogRow]]
"""Makes changelog rows of the sorted rows of one partition, or of some of its keys."""


class RowError(StreamsError):
    """A row of a source cannot be taken."""


class DuplicateKeyError(RowError):
    """A key has several rows where it may have one."""


def duplicate(store: str, key: object) -> DuplicateKeyError:
    """The error for a row of a key that has another one."""
    return DuplicateKeyError(
        f"key {key!r} of store {store!r} has another row that is as new, or newer; make the keys of the source unique, "
        'or say content="records" where they are the records that an aggregate is made of, or latest=True, and the '
        "newest row counts"
    )


class FoldOrder(Enum):
    """The order in which the rows of a partition are folded; those of one key are in the order of their times."""

    BY_TIME = auto()
    """In the order of times, whatever the keys are."""
    BY_KEY = auto()
    """In the order of keys, which is not that of the rows in the engine."""
    AS_STORED = auto()
    """In the order of keys, as the engine has its rows: they need no sorting, and the keys of a partition can be shared
    out among several tasks."""


class Target(Protocol):
    """How rows of one kind become changelog rows of one store."""

    @property
    def store(self) -> StorePlace:
        """The store."""
        ...

    @property
    def row_key(self) -> Callable[[], Callable[[object], bytes]] | None:
        """Makes the function that tells rows of one key from others, where they have to meet before they are encoded;
        ``None`` where they meet in the store.
        """
        ...

    @property
    def keeps_last(self) -> bool:
        """Whether of the rows of one key the last one counts alone."""
        ...

    @property
    def order(self) -> FoldOrder:
        """The order in which rows are folded."""
        ...

    def encoder(self, layout: TopicLayout) -> EncodeRow:
        """Makes what encodes rows for the tasks of that layout."""
        ...

    def folder(self) -> FoldRows:
        """Makes what folds the rows of one partition."""
        ...


def no_key(store: str) -> RowError:
    """The error for a row without key."""
    return RowError(f"a row for store {store!r} has no key")


def checked_time(key: object, time: int | None, store: str) -> int:
    """The time of a row; ``RowError`` where it has none, or a negative one."""
    if time is None or time < 0:
        raise RowError(f"the row of key {key!r} for store {store!r} has the timestamp {time!r}; expected 0 or more")
    return time
