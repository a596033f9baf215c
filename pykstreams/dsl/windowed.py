"""``TimeWindowedKStream``, ``SessionWindowedKStream``: grouped records, and the windows of time they fall into."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import Aggregator, Duration, Initializer, Reducer
from pykstreams.core.user_code.tells_where import TellsWhere
from pykstreams.core.windows import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    UnlimitedWindows,
    Window,
    Windowed,
    Windows,
)
from pykstreams.dsl.aggregations.grouped_records import GroupedRecords
from pykstreams.dsl.aggregations.idle_windows import IdleWindows, idle_ms_on_close
from pykstreams.dsl.aggregations.late_records import LateRecordsTo, late_child_of
from pykstreams.dsl.aggregations.windowed_aggregation import checked_windows, window_operator, windowed_key_serde
from pykstreams.dsl.annotations.inference import aggregate_serde
from pykstreams.dsl.ktable import KTable
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.other_steps import TO_A_RESULT
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.stores.materialization import options_of
from pykstreams.dsl.stores.session_materialization import SessionTableStore, session_table_store
from pykstreams.dsl.stores.table_logic import AggregatedTable
from pykstreams.dsl.stores.window_materialization import WindowTableStore, window_table_store
from pykstreams.dsl.user_calls import calls
from pykstreams.processors import (
    COUNT,
    COUNT_OF_SESSION,
    Aggregation,
    AnyTableView,
    SessionAggregate,
    SessionAggregation,
    StoredView,
    WindowedView,
    reducing,
    reducing_sessions,
)
from pykstreams.serdes.defaults import SerdeOrDefault, over_default
from pykstreams.serdes.primitives import LongSerde
from pykstreams.serdes.windowed import SessionWindowedSerde
from pykstreams.topology.graph import WindowClosing
from pykstreams.topology.step_facts import described_windows

if TYPE_CHECKING:
    from pykstreams.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")
VA = TypeVar("VA")

_AGGREGATE = "KSTREAM-AGGREGATE-"
_REDUCE = "KSTREAM-REDUCE-"


class TimeWindowedKStream(TellsWhere, Generic[K, V]):
    """A grouped stream with time or sliding windows; an aggregation gives a table with one row a key and window.

    Records with null key are dropped, with sliding windows also those with null value. A record that comes after a
    window was closed, which is when the operator has seen a time later than its end by the grace period, does not get
    into that window and counts as dropped.

    ``late_records_to`` of an aggregation takes the records that got into none of their windows, with their
    timestamps and headers: the name of a topic, or a function that is called with the stream of them. Nothing in Kafka
    Streams corresponds to it; the rest is ``TimeWindowedKStream``, 4.3.1.
    """

    _elsewhere = TO_A_RESULT

    def __init__(self, records: GroupedRecords[K, V, KStream[K, V]], windows: Windows[Window] | SlidingWindows) -> None:
        self._records = records
        self._windows = checked_windows(windows)
        self._emit_strategy = EmitStrategy.ON_WINDOW_UPDATE
        self._idle_ms: int | None = None

    def __repr__(self) -> str:
        return self._records.place.shown_as("TimeWindowedKStream", described_windows(self._windows))

    @property
    def _record_serdes(self) -> RecordSerdes:
        return self._records.record_serdes

    def emit_strategy(self, strategy: EmitStrategy, *, idle: Duration | None = None) -> TimeWindowedKStream[K, V]:
        """Says when the aggregations that follow forward their results; returns this stream.

        ``ON_WINDOW_CLOSE`` needs windows that end; those of a ``Windows`` of your own must all be of ``size_ms``.

        Windows close by the times of records, so without records the last ones stay open. With ``idle`` they go on
        to close by the wall clock once the task has had no input for so long (docs/guides/idle-input.md; beyond Kafka
        Streams).
        """
        _check_strategy(strategy)
        if strategy is EmitStrategy.ON_WINDOW_CLOSE and isinstance(self._windows, UnlimitedWindows):
            raise ValueError("unlimited windows never close; use EmitStrategy.ON_WINDOW_UPDATE or other windows")
        self._idle_ms = idle_ms_on_close(idle, on_close=strategy is EmitStrategy.ON_WINDOW_CLOSE)
        self._emit_strategy = strategy
        return self

    @calls()
    def count(
        self,
        *,
        materialized: Materialized[K, int] | str | None = None,
        name: str | None = None,
        late_records_to: LateRecordsTo[KStream[K, V]] | None = None,
    ) -> KTable[Windowed[K], int]:
        """Counts the records of each key and window, as 8-byte longs unless a value serde is given."""
        options = options_of(materialized)
        if materialized is not None and options.store_name is None and not isinstance(self._windows, SlidingWindows):
            self._records.place.graph.namer.store(_AGGREGATE)
        return self._aggregated(_AGGREGATE, name, options, LongSerde(), COUNT, late_records_to)

    @calls(reducer="aggregate, new -> value")
    def reduce(
        self,
        reducer: Reducer[V],
        *,
        materialized: Materialized[K, V] | str | None = None,
        name: str | None = None,
        late_records_to: LateRecordsTo[KStream[K, V]] | None = None,
    ) -> KTable[Windowed[K], V]:
        """Combines the values of each key and window by ``reducer(aggregate, new)``; the first value starts it."""
        value_serde, options = self._records.options.value_serde, options_of(materialized)
        return self._aggregated(_REDUCE, name, options, value_serde, reducing(reducer), late_records_to)

    @calls(initializer="", aggregator="key, value, aggregate -> value")
    def aggregate(
        self,
        initializer: Initializer[VR],
        aggregator: Aggregator[K, V, VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
        late_records_to: LateRecordsTo[KStream[K, V]] | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates each key and window from ``initializer()`` by ``aggregator(key, value, aggregate)``.

        ``None`` deletes.
        """
        aggregation = Aggregation(initializer, aggregator)
        values, options = aggregate_serde(initializer, aggregator), options_of(materialized)
        return self._aggregated(_AGGREGATE, name, options, values, aggregation, late_records_to)

    def _aggregated(
        self,
        prefix: str,
        name: str | None,
        options: Materialized[K, VR],
        value_serde: SerdeOrDefault,
        aggregation: Aggregation[K, V, VA],
        late_records_to: LateRecordsTo[KStream[K, V]] | None,
    ) -> KTable[Windowed[K], VR]:
        records, windows, strategy = self._records, self._windows, self._emit_strategy
        graph, key_serde = records.place.graph, records.options.key_serde
        store = window_table_store(graph, options, prefix, key_serde, value_serde, windows, strategy)

        def operator(kept: str, old: bool, late_child: str | None, idle_ms: int | None) -> OperatorSupplier:
            return window_operator(windows, kept, aggregation, old, strategy, late_child, idle_ms)

        return _windowed_table(
            records,
            graph.namer.named(name, prefix),
            store,
            operator,
            windowed_key_serde(store),
            WindowedView,
            grace_ms=windows.grace_period_ms,
            idle_ms=self._idle_ms,
            late_records_to=late_records_to,
        )


class SessionWindowedKStream(TellsWhere, Generic[K, V]):
    """A grouped stream with session windows; an aggregation gives a table with one row a key and session.

    A record joins the sessions of its key that lie within the inactivity gap of it, and these become one: the table
    loses the old ones and has the new one. Records with null key are dropped. A record is late, and counts as dropped,
    if its session ended longer ago than the gap plus the grace period.

    ``late_records_to`` of an aggregation takes the late records, with their timestamps and headers: the name of a
    topic, or a function that is called with the stream of them. Nothing in Kafka Streams corresponds to it; the rest
    is ``SessionWindowedKStream``, 4.3.1.
    """

    _elsewhere = TO_A_RESULT

    def __init__(self, records: GroupedRecords[K, V, KStream[K, V]], windows: SessionWindows) -> None:
        self._records = records
        self._windows = windows
        self._emit_strategy = EmitStrategy.ON_WINDOW_UPDATE
        self._idle_ms: int | None = None

    def __repr__(self) -> str:
        return self._records.place.shown_as("SessionWindowedKStream", described_windows(self._windows))

    @property
    def _record_serdes(self) -> RecordSerdes:
        return self._records.record_serdes

    def emit_strategy(self, strategy: EmitStrategy, *, idle: Duration | None = None) -> SessionWindowedKStream[K, V]:
        """Says when the aggregations that follow forward their results; returns this stream.

        With ``idle`` sessions go on to close by the wall clock once the task has had no input for so long
        (docs/guides/idle-input.md; beyond Kafka Streams).
        """
        _check_strategy(strategy)
        self._idle_ms = idle_ms_on_close(idle, on_close=strategy is EmitStrategy.ON_WINDOW_CLOSE)
        self._emit_strategy = strategy
        return self

    @calls()
    def count(
        self,
        *,
        materialized: Materialized[K, int] | str | None = None,
        name: str | None = None,
        late_records_to: LateRecordsTo[KStream[K, V]] | None = None,
    ) -> KTable[Windowed[K], int]:
        """Counts the records of each key and session, as 8-byte longs unless a value serde is given."""
        options = options_of(materialized)
        if materialized is not None and options.store_name is None:
            self._records.place.graph.namer.store(_AGGREGATE)
        return self._aggregated(_AGGREGATE, name, options, LongSerde(), COUNT_OF_SESSION, late_records_to)

    @calls(reducer="aggregate, new -> value")
    def reduce(
        self,
        reducer: Reducer[V],
        *,
        materialized: Materialized[K, V] | str | None = None,
        name: str | None = None,
        late_records_to: LateRecordsTo[KStream[K, V]] | None = None,
    ) -> KTable[Windowed[K], V]:
        """Combines the values of each key and session by ``reducer(aggregate, new)``; the first value starts it.

        Sessions that merge are combined in the same way, in order of time.
        """
        value_serde, options = self._records.options.value_serde, options_of(materialized)
        return self._aggregated(_REDUCE, name, options, value_serde, reducing_sessions(reducer), late_records_to)

    @calls(initializer="", aggregator="key, value, aggregate -> value", session_merger="key, aggregate, other")
    def aggregate(
        self,
        initializer: Initializer[VR],
        aggregator: Aggregator[K, V, VR],
        session_merger: Callable[[K, VR, VR], VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
        late_records_to: LateRecordsTo[KStream[K, V]] | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates each key and session from ``initializer()`` by ``aggregator(key, value, aggregate)``.

        Before, ``session_merger(key, aggregate, other)`` adds the sessions that merge, one by one in order of time, to
        what ``initializer()`` gave. ``None`` deletes.
        """
        aggregation = SessionAggregation(initializer, aggregator, session_merger)
        values, options = aggregate_serde(initializer, aggregator, session_merger), options_of(materialized)
        return self._aggregated(_AGGREGATE, name, options, values, aggregation, late_records_to)

    def _aggregated(
        self,
        prefix: str,
        name: str | None,
        options: Materialized[K, VR],
        value_serde: SerdeOrDefault,
        aggregation: SessionAggregation[K, V, VA],
        late_records_to: LateRecordsTo[KStream[K, V]] | None,
    ) -> KTable[Windowed[K], VR]:
        records, windows, strategy = self._records, self._windows, self._emit_strategy
        graph, key_serde = records.place.graph, records.options.key_serde
        store = session_table_store(graph, options, prefix, key_serde, value_serde, windows, strategy)

        def operator(kept: str, old: bool, late_child: str | None, idle_ms: int | None) -> OperatorSupplier:
            return SessionAggregate(kept, windows, aggregation, old, strategy, late_child, idle_ms)

        return _windowed_table(
            records,
            graph.namer.named(name, prefix),
            store,
            operator,
            None if store.key_serde is None else over_default(store.key_serde, SessionWindowedSerde),
            StoredView,
            grace_ms=windows.grace_period_ms + windows.inactivity_gap_ms,
            idle_ms=self._idle_ms,
            late_records_to=late_records_to,
        )


def _check_strategy(strategy: object) -> None:
    if not isinstance(strategy, EmitStrategy):
        raise TypeError(f"emit strategy is {strategy!r}; expected a member of EmitStrategy")


def _windowed_table(
    records: GroupedRecords[K, V, KStream[K, V]],
    node: str,
    store: WindowTableStore | SessionTableStore,
    operator: Callable[[str, bool, str | None, int | None], OperatorSupplier],
    key_serde: SerdeOrDefault,
    view: Callable[[str], AnyTableView],
    *,
    grace_ms: int,
    idle_ms: int | None,
    late_records_to: LateRecordsTo[KStream[K, V]] | None,
) -> KTable[Windowed[K], VR]:
    """Adds an aggregation in windows of any kind over that store.

    :param operator: returns the operator for a store, whether it sends old values, the child for late records, and
        after how many ms without input windows close.
    """
    late_child, idle = late_child_of(node, late_records_to), IdleWindows.after(idle_ms)
    closing = WindowClosing(grace_ms, idle.close_after)
    logic = AggregatedTable(store, lambda kept, old: operator(kept, old, late_child, idle.idle_ms), view)
    return KTable(records.aggregated(node, store, logic, key_serde, closing=closing, late_records_to=late_records_to))
