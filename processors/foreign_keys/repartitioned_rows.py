"""Rows that are repartitioned to what they refer to: sent under the key of the row they refer to, and kept there.

A row of the *left* table refers to rows of the *referred* one by their keys. It is sent through a repartition
topic that is partitioned by the foreign key alone, under a key that is made of the foreign key and of the row's own
key; so a task has, beside a row that is referred to, all rows that refer to it, next to each other in the order of
keys.

Invariant: the topic holds, for each foreign key of a row as it is now, the row; and a deletion for each that it had
before. A foreign key that changes is deleted under one key and added under another, so that nothing depends on the
order in which two partitions are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Change, Headers
from pykstreams.processors.drop_reasons import OUT_OF_ORDER
from pykstreams.processors.process import Process
from pykstreams.processors.same_key import is_same_key
from pykstreams.processors.stores import table_rows
from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.state.interfaces.operator_stores import TableRows

K = TypeVar("K")
V = TypeVar("V")

ForeignKeys: TypeAlias = Callable[[K, V], Iterable[object]]
"""(key, value) of a row -> the keys of the rows that it refers to"""

MakeKey: TypeAlias = Callable[[Any, Any], object]
"""(foreign key, key of the row) -> key of the repartitioned row; only the user knows the types of keys"""

OfKey: TypeAlias = Callable[[Any], object]
"""A key of one kind -> the key of another kind that it stands for, or that is in it"""


@dataclass(frozen=True, slots=True)
class RepartitionedKeys:
    """How the keys of repartitioned rows and of results are made and taken apart.

    :param prefix_serializer: writes, for a foreign key, what the bytes of all keys with that foreign key start with,
        and of no others; may be an ``OverDefault``.
    :param make: (foreign key, key of the row) -> key of the repartitioned row.
    :param foreign_key: key of a repartitioned row -> foreign key.
    :param result: key of a repartitioned row -> key of the result; ``None`` where they are the same.
    :param repartitioned: the way back, for reading a result by its key.
    :param checked: whether the bytes are a user's affair, so that what a scan finds is checked against its foreign key.
    """

    prefix_serializer: object
    make: MakeKey = CombinedKey
    foreign_key: OfKey = itemgetter(0)
    result: OfKey | None = None
    repartitioned: OfKey | None = None
    checked: bool = False


@dataclass(frozen=True, slots=True)
class RepartitionRows(Generic[K, V]):
    """Sends each row under the keys that ``make(foreign_key, key)`` gives for its foreign keys.

    For a change come first the deletions, of the foreign keys that only the old row has, then the new row. A null
    foreign key is dropped and counted, once, when the row that has it comes; with ``keeps_null`` it is one like others,
    of a row that never is there. Foreign keys of different types are never equal (``1`` and ``True`` have
    different bytes). A change that is older than the newest of its row, which only versioned tables know, is dropped.

    Where ``foreign_keys`` raises and the processing exception handler goes on, the row has no foreign keys: what was
    repartitioned before is deleted, and nothing is left behind that later changes would not find.

    Nobody but the table knows what a row referred to before, so it must not forget that before the deletions are sent.
    """

    takes_back: ClassVar[bool] = True

    foreign_keys: ForeignKeys[K, V]
    make: MakeKey = CombinedKey
    keeps_null: bool = False

    def build(self, context: OperatorContext) -> Process:
        return repartition_rows(self.foreign_keys, self.make, context, context.forward, keeps_null=self.keeps_null)


@dataclass(frozen=True, slots=True)
class KeepRepartitioned:
    """Keeps repartitioned rows in a store without cache, and forwards their changes, each with the old value.

    What deletes nothing is not forwarded, unless it is replayed: the deletion may be known here, and nowhere else.
    """

    store: str

    def build(self, context: OperatorContext) -> Process:
        store: TableRows[object, object] = table_rows(context, self.store)
        get_row, put_row = store.get_row, store.put_row
        forward, fail, current = context.forward, context.fail, context.current

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                row = get_row(key)
                if row is None:
                    if value is None and not current.replayed:
                        return
                    old = None
                else:
                    old = row[0]
                newest = put_row(key, value, timestamp)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, (value, old, newest), timestamp, headers)

        return process


def repartition_rows(
    foreign_keys: ForeignKeys[K, V],
    make: MakeKey,
    context: OperatorContext,
    forward: Process,
    *,
    keeps_null: bool,
) -> Process:
    """Makes the function that sends rows to what they refer to, for operators that forward in a way of their own."""
    fail, drop = context.fail, context.drop

    def process(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
        new, old, newest = change
        if not newest:
            drop(OUT_OF_ORDER)
            return
        current: list[object] = []
        gone: list[object] = []
        try:
            if new is not None:
                current = _distinct(foreign_keys(key, new))
                if not keeps_null and None in current:
                    current.remove(None)
                    drop("a row refers to null")
            repartitioned = [make(foreign_key, key) for foreign_key in current]
        except Exception as error:
            fail(error, key, change, timestamp, headers)
            current, repartitioned = [], []
        if old is not None:
            try:
                for foreign_key in _distinct(foreign_keys(key, old)):
                    if (keeps_null or foreign_key is not None) and not _contains(current, foreign_key):
                        gone.append(make(foreign_key, key))
            except Exception:  # reported when the row was new, and then it was not repartitioned
                gone.clear()
        for gone_key in gone:
            try:
                forward(gone_key, None, timestamp, headers)
            except Exception as error:  # a key that could not be written, and now cannot be deleted
                fail(error, key, change, timestamp, headers)
        for repartitioned_key in repartitioned:
            forward(repartitioned_key, new, timestamp, headers)

    return process


def _distinct(foreign_keys: Iterable[object]) -> list[object]:
    """Each foreign key once, in order; they need not be hashable, and are few."""
    found: list[object] = []
    for foreign_key in foreign_keys:
        if not _contains(found, foreign_key):
            found.append(foreign_key)
    return found


def _contains(foreign_keys: list[object], wanted: object) -> bool:
    return any(is_same_key(foreign_key, wanted) for foreign_key in foreign_keys)
