"""``KTable.suppress``: its options, the table it makes, and how it finds out when windows close.

A window closes when stream time is past its end by the grace of the aggregations above. Windowed aggregations leave
that grace on their graph nodes; where several are above (a join of windowed tables), the longest counts
(``GraphGraceSearchUtil``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import ClassVar

from pykstreams.core.errors import TopologyError
from pykstreams.core.names import valid_name
from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import Duration, duration_ms, flag, keep_whole_number
from pykstreams.dsl.aggregations.idle_windows import idle_ms_of
from pykstreams.dsl.options import Options, expected, unexpected
from pykstreams.dsl.place import Place
from pykstreams.dsl.stores.table_logic import TableLogic
from pykstreams.dsl.table import Table
from pykstreams.processors import AnyTableView, SuppressedView, TableSuppress
from pykstreams.state.buffers.suppression_buffer import suppression_buffer
from pykstreams.topology.graph import GraphNode, OperatorNode, is_versioned
from pykstreams.topology.stores import GivenStore, StoreFactory

_PREFIX = "KTABLE-SUPPRESS-"
_NO_LIMITS = "BufferConfig.UNBOUNDED"


class BufferFullStrategy(Enum):
    """The cure for a buffer that holds more than it may."""

    EMIT_EARLY = "emit_early"
    SHUT_DOWN = "shut_down"


@dataclass(frozen=True, kw_only=True)
class BufferConfig(Options):
    """Limits of what may wait, and what happens when it is more; without limits as much as there is memory for.

    The oldest changes go on early unless ``when_full`` says ``SHUT_DOWN``: then the application fails. ``max_bytes``
    counts keys, values and where they came from, as Kafka Streams does. ``logging`` and ``topic_config`` are those of
    the buffer's changelog.
    """

    UNBOUNDED: ClassVar[BufferConfig]

    max_records: int | None = None
    max_bytes: int | None = None
    when_full: BufferFullStrategy | None = None
    logging: bool = True
    topic_config: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for field in ("max_records", "max_bytes"):
            if getattr(self, field) is None:
                continue
            if (limit := keep_whole_number(self, field, " of a BufferConfig")) < 0:
                raise ValueError(f"{field} of a BufferConfig is {limit}; it must not be negative")
        flag(self.logging, "logging of a BufferConfig")

    @property
    def is_strict(self) -> bool:
        """Whether nothing can go on early."""
        if self.when_full is None:
            return self.max_records is None and self.max_bytes is None
        return self.when_full is BufferFullStrategy.SHUT_DOWN


BufferConfig.UNBOUNDED = BufferConfig()


@dataclass(frozen=True, kw_only=True)
class Suppressed(Options):
    """Until when changes are held back; made by ``until_window_closes`` and ``until_time_limit``.

    The name is that of the node; the buffer's store is named after it, too.
    """

    buffer: BufferConfig
    time_limit_ms: int | None
    name: str | None = None
    idle_ms: int | None = None

    @classmethod
    def until_window_closes(
        cls, buffer: BufferConfig, *, name: str | None = None, idle: Duration | None = None
    ) -> Suppressed:
        """Lets only the final result of each window go on; the table must be that of a windowed aggregation.

        The buffer must be strict, since what went on early would not be final: without limits, or with ``SHUT_DOWN``.

        With ``idle`` windows go on to close by the wall clock, here and in the aggregations above, once the task has
        had no input for so long (docs/guides/idle-input.md; beyond Kafka Streams).
        """
        expected("buffer", buffer, BufferConfig, _NO_LIMITS)
        if not buffer.is_strict:
            raise ValueError(
                f"{buffer!r} would let results go on before their window closes; leave its limits away, or give it "
                "when_full=BufferFullStrategy.SHUT_DOWN"
            )
        return cls(buffer=buffer, time_limit_ms=None, name=_checked(name), idle_ms=idle_ms_of(idle))

    @classmethod
    def until_time_limit(
        cls, time_limit: Duration, buffer: BufferConfig, *, name: str | None = None, idle: Duration | None = None
    ) -> Suppressed:
        """Lets a change of a key go on after ``time_limit`` of stream time, with all that has changed since then.

        With ``idle`` that time goes on by the wall clock once the task has had no input for so long.
        """
        expected("buffer", buffer, BufferConfig, _NO_LIMITS)
        limit = duration_ms(time_limit, "time limit of a suppression")
        return cls(buffer=buffer, time_limit_ms=limit, name=_checked(name), idle_ms=idle_ms_of(idle))


class SuppressedTable(TableLogic):
    """A table behind a suppression. Its parent sends old values, since they are what others still see."""

    def __init__(self, parent: TableLogic, suppress: TableSuppress, store: StoreFactory) -> None:
        parent.send_old_values(force=True)
        self._parent = parent
        self._suppress = suppress
        self._store = store

    def send_old_values(self, *, force: bool) -> bool:
        self.sends_old_values = self._parent.send_old_values(force=force)
        return self.sends_old_values

    def operator(self) -> OperatorSupplier:
        return self._suppress

    def stores(self) -> tuple[StoreFactory, ...]:
        return (self._store,)

    def materialize_view(self) -> AnyTableView:
        return SuppressedView(self._parent.materialize_view(), self._suppress.store)


def suppress(table: Table, suppressed: Suppressed) -> Table:
    """Adds a suppression behind a table."""
    if not isinstance(suppressed, Suppressed):
        by_time = isinstance(suppressed, timedelta | int)
        until = f"until_time_limit({suppressed!r}, {_NO_LIMITS})" if by_time else f"until_window_closes({_NO_LIMITS})"
        raise unexpected("suppressed", suppressed, Suppressed, f"Suppressed.{until}")
    place = table.place
    if is_versioned(place.node):
        raise TopologyError(
            f"{place.name} is a versioned table and cannot be suppressed: its changes may be older than the newest one "
            "of their row, and a suppression would keep one change of each row and lose the others. Keep the table in "
            "a store that is not versioned"
        )
    graph, buffer = place.graph, suppressed.buffer
    if suppressed.name is None:
        name = graph.namer.node(_PREFIX)
    else:
        name = suppressed.name  # the counter does not advance (KTableImpl.suppress, 4.3.1)
    final = suppressed.time_limit_ms is None
    wait_ms = grace_above(place.node) if suppressed.time_limit_ms is None else suppressed.time_limit_ms
    if final and suppressed.idle_ms is not None:
        close_when_idle(place.node, suppressed.idle_ms)
    if suppressed.name is None:
        store_name = graph.namer.store(_PREFIX)
        if buffer.logging:
            graph.implicit_names.add_changelog(store_name)
    else:
        store_name = f"{suppressed.name}-store"
    store = suppression_buffer(
        store_name, place.key_serde, place.value_serde, logging=buffer.logging, topic_config=buffer.topic_config
    )
    operator = TableSuppress(
        store_name,
        wait_ms,
        final,
        buffer.max_records,
        buffer.max_bytes,
        buffer.when_full is BufferFullStrategy.SHUT_DOWN,
        suppressed.idle_ms,
    )
    logic = SuppressedTable(table.logic, operator, GivenStore(store))
    node = OperatorNode(name, logic.operator, stores=logic.stores, versioned=False)
    graph.add(node, place.node)
    suppressed_place = Place(
        graph, node, name, place.key_serde, place.value_serde, place.sources, partitioner=place.partitioner
    )
    return Table(suppressed_place, logic)


def grace_above(node: GraphNode) -> int:
    """The longest grace of the windowed aggregations that a table is made of; ``TopologyError`` where one has none."""
    return _grace_above(node, ())


def _grace_above(node: GraphNode, below: tuple[str, ...]) -> int:
    if node.closing is not None:
        return node.closing.grace_ms
    path = (node.name, *below)
    parents = [parent for parent in node.parents if parent.parents]  # the root is nobody's table
    if not parents:
        raise TopologyError(
            f"there are no windows whose end a suppression could wait for in {' -> '.join(path)}; suppress the table "
            "of a windowed aggregation, or use Suppressed.until_time_limit"
        )
    return max(_grace_above(parent, path) for parent in parents)


def close_when_idle(node: GraphNode, idle_ms: int) -> None:
    """Has the windowed aggregations that a table is made of close windows after so long without input, too.

    A record that belongs to a window whose result has gone on is late there then. ``TopologyError`` for cogrouped
    streams, each of which has a time of its own.
    """
    if node.closing is None:
        for parent in node.parents:
            close_when_idle(parent, idle_ms)
    elif node.closing.when_idle is None:
        raise TopologyError(
            f"{node.name} aggregates cogrouped streams, whose windows cannot close while input is idle, since each "
            "stream has a time of its own; leave idle away, or merge the streams and aggregate them as one"
        )
    else:
        node.closing.when_idle(idle_ms)


def _checked(name: str | None) -> str | None:
    return None if name is None else valid_name(name)
