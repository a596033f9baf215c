"""The description of one store by the user: where its rows come from, and which of their columns are what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pykstreams.bulk.sources.sources import KafkaTopic
from pykstreams.core.types import AnyPartitioner

Row: TypeAlias = dict[str, Any]
"""A row of a source: values by the names of the columns."""

Column: TypeAlias = str | Callable[[Row], object]
"""The name of a column, or a function of the row: as an object, or as ``module:attribute``."""

OnError: TypeAlias = Literal["fail", "count", "rejects"]
"""The handling of rows that cannot be taken: the job fails, or they are counted, or they are written to a file, too."""

Content: TypeAlias = Literal["entries", "records", "changelog"]
"""The kind of rows: what the store holds; what the operator of the store gets; records of its changelog."""


@dataclass(frozen=True)
class StoreBootstrap:
    """One store, and the rows that it is made of.

    :param store: the name of the store in the topology.
    :param source: where the rows come from: a path, a source of ``pykstreams.spark``, or a Spark DataFrame.
    :param key: a column, or a function of the row (or its name, ``module:attribute``); a topic needs none.
    :param value: a column, a list of columns (the value is a dict of these), or a function of the row; left out, the
        value is a dict of all columns. A value of ``None`` deletes.
    :param timestamp: a column of integers (ms) or of times, a function, or one number for all rows; left out, the time
        at which the job was started.
    :param row: instead of these three, a function row -> ``(key, value, timestamp in ms)``.
    :param window_start: for windows and sessions as ready rows: where the window starts.
    :param window_end: for sessions as ready rows: where the session ends.
    :param content: ``"entries"``: the rows are what the store holds (of a versioned store: the history of its keys; of
        a join's window store: the records that wait). ``"records"``: the application's own operator makes the store of
        them: an aggregate of the records that are grouped, the subscriptions of a foreign-key join and the
        repartitioned rows of a one-to-many join of the rows of the left table. ``"changelog"``: key and value are
        serialized already, as in the changelog of the store. Left out, ``"records"`` for stores that hold nothing else
        than what their operator makes of a table's rows (subscriptions, repartitioned rows), else ``"entries"``.
    :param latest: several rows with one key are fine, and that with the highest timestamp counts. Without, they are
        errors, apart from the versions of a versioned store and from records, and where a topic is the source, of
        which the last record of a key counts.
    :param on_error: what becomes of rows that cannot be taken: without key, refused by a serde, or second ones of a
        key.
    :param partitioner: who partitions the rows, where it is not the default partitioner.
    :param node: which operator takes the records, by its name, where several write the store (cogrouped streams).
    """

    store: str
    source: object
    key: Column | None = None
    value: Column | Sequence[str] | None = None
    timestamp: Column | int | None = None
    row: Callable[[Row], tuple[object, object, int]] | str | None = None
    window_start: Column | None = None
    window_end: Column | None = None
    content: Content | None = None
    latest: bool = False
    on_error: OnError = "fail"
    partitioner: AnyPartitioner | None = None
    node: str | None = None

    def __post_init__(self) -> None:
        one_of_two = (self.key is None) != (self.row is None)
        if not one_of_two and not (isinstance(self.source, KafkaTopic) and self.row is None):
            raise ValueError(f"store {self.store!r} needs either key= or row=, which gives (key, value, timestamp)")
        if self.row is not None and (self.value is not None or self.timestamp is not None):
            raise ValueError(
                f"row= of store {self.store!r} gives value and timestamp, too; leave value= and timestamp= out"
            )
        if self.on_error not in ("fail", "count", "rejects"):
            raise ValueError(f"on_error of store {self.store!r} is {self.on_error!r}; expected fail, count or rejects")
        if self.content not in (None, "entries", "records", "changelog"):
            raise ValueError(
                f"content of store {self.store!r} is {self.content!r}; expected entries, records or changelog"
            )
