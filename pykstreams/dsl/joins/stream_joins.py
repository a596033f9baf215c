"""``KStream.join`` and its relatives: their options, of which each kind of other side takes some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from pykstreams.core.types import KeyValueMapper
from pykstreams.core.windows import JoinWindows
from pykstreams.dsl.joins.foreign_key_types import note_global_key
from pykstreams.dsl.joins.join_kind import JoinKind
from pykstreams.dsl.joins.stream_foreign_key_join import join_stream_by_foreign_key
from pykstreams.dsl.joins.stream_stream_join import join_streams
from pykstreams.dsl.joins.stream_table_join import (
    OnExpiredHistory,
    join_stream_with_global_table,
    join_stream_with_table,
)
from pykstreams.dsl.options import Joined, Repartitioned, StreamJoined
from pykstreams.dsl.place import Place
from pykstreams.dsl.table import Table
from pykstreams.processors import AnyTableView

K = TypeVar("K")
V = TypeVar("V")
VO = TypeVar("VO")
KG = TypeVar("KG")
VR = TypeVar("VR")


class JoinOptions(NamedTuple, Generic[K, V, VO, KG, VR]):
    """The options of a join, besides its sides."""

    joiner: Callable[..., VR]
    with_key: bool
    windows: JoinWindows | None
    stream_joined: StreamJoined[K, V, VO] | None
    joined: Joined[KG, V, VO] | None
    key_selector: KeyValueMapper[K, V, KG | None] | None
    name: str | None
    on_expired_history: OnExpiredHistory = "null"
    repartitioned: Repartitioned[K, VR] | None = None

    def refuse_history(self, other_side: str) -> None:
        """As ``refuse``, for ``on_expired_history`` unless it is what it is anyway."""
        self.refuse(other_side, on_expired_history=None if self.on_expired_history == "null" else "drop")

    def refuse(self, other_side: str, **options: object) -> None:
        """Raises ``TypeError`` for an option that was given and says nothing about joins with such a side."""
        for name, value in options.items():
            if value is not None:
                raise TypeError(
                    f"{name}={value!r} is given, and the other side of the join is {other_side}; leave it out"
                )


def join_with_stream(stream: Place, other: Place, options: JoinOptions[K, V, VO, KG, VR], kind: JoinKind) -> Place:
    """Joins two streams."""
    options.refuse("a stream", joined=options.joined, key_selector=options.key_selector, name=options.name)
    options.refuse("a stream", repartitioned=options.repartitioned)
    options.refuse_history("a stream")
    if options.windows is None:
        raise TypeError("a join of two streams needs windows, such as windows=JoinWindows(timedelta(minutes=5))")
    return join_streams(
        stream,
        other,
        options.joiner,
        options.windows,
        options.stream_joined,
        kind,
        with_key=options.with_key,
    )


def join_with_table(stream: Place, table: Table, options: JoinOptions[K, V, VO, KG, VR], *, keeps_left: bool) -> Place:
    """Joins a stream with a table: by its keys, or by the foreign keys that ``key_selector`` gives."""
    options.refuse("a table", windows=options.windows, stream_joined=options.stream_joined, name=options.name)
    if options.key_selector is not None:
        return join_stream_by_foreign_key(
            stream,
            table,
            options.key_selector,
            options.joiner,
            options.joined,
            options.repartitioned,
            keeps_left=keeps_left,
            with_key=options.with_key,
            on_expired_history=options.on_expired_history,
        )
    options.refuse("a table that is joined by the stream's keys", repartitioned=options.repartitioned)
    return join_stream_with_table(
        stream,
        table,
        options.joiner,
        options.joined,
        keeps_left=keeps_left,
        with_key=options.with_key,
        on_expired_history=options.on_expired_history,
    )


def join_with_global_table(
    stream: Place, table: Place, view: AnyTableView, options: JoinOptions[K, V, VO, KG, VR], *, keeps_left: bool
) -> Place:
    """Joins a stream with a global table, which is asked for the keys that ``key_selector`` gives."""
    options.refuse(
        "a global table", windows=options.windows, stream_joined=options.stream_joined, joined=options.joined
    )
    options.refuse("a global table", repartitioned=options.repartitioned)
    options.refuse_history("a global table")
    if options.key_selector is None:
        raise TypeError(
            "a join with a global table needs key_selector=, a function of (key, value) that gives the key to look up"
        )
    note_global_key(options.key_selector, table)
    return join_stream_with_global_table(
        stream,
        view,
        options.key_selector,
        options.joiner,
        options.name,
        keeps_left=keeps_left,
        with_key=options.with_key,
    )
