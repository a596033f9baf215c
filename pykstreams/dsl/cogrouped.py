"""Cogrouped streams: several grouped streams with one aggregate a key, and so with one store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, overload

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import Aggregator, Initializer, Merger
from pykstreams.core.user_code.tells_where import TellsWhere
from pykstreams.core.windows import EmitStrategy, SessionWindows, SlidingWindows, Window, Windowed, Windows
from pykstreams.dsl.aggregations.cogrouped_records import AGGREGATE, CogroupedRecords, OneAggregator
from pykstreams.dsl.aggregations.windowed_aggregation import checked_windows, window_operator, windowed_key_serde
from pykstreams.dsl.ktable import KTable
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.other_steps import TO_A_COGROUPED_RESULT
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.stores.materialization import options_of, table_store
from pykstreams.dsl.stores.session_materialization import session_table_store
from pykstreams.dsl.stores.window_materialization import window_table_store
from pykstreams.dsl.user_calls import calls
from pykstreams.processors import (
    Aggregation,
    SessionAggregate,
    SessionAggregation,
    StoredView,
    StreamAggregate,
    WindowedView,
)
from pykstreams.serdes.defaults import over_default
from pykstreams.serdes.windowed import SessionWindowedSerde
from pykstreams.topology.graph import Graph, WindowClosing
from pykstreams.topology.step_facts import described_windows

if TYPE_CHECKING:
    from pykstreams.dsl.grouped import KGroupedStream

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")


class CogroupedKStream(TellsWhere, Generic[K, VR]):
    """Several grouped streams whose records are aggregated together: one table, with one store and one row a key.

    Each stream has an aggregator of its own, all of them change the same aggregate. Streams whose keys may have changed
    go through a repartition topic, the topics of all streams must have equal partition counts. Records with null key or
    value are dropped.

    ``cogroup`` adds to this object and gives it back; a table is made of the streams that are there when ``aggregate``
    is called. Source: ``CogroupedKStream``, 4.3.1.
    """

    _elsewhere = TO_A_COGROUPED_RESULT

    def __init__(self, graph: Graph) -> None:
        self._records: CogroupedRecords[K, VR] = CogroupedRecords(graph)

    def __repr__(self) -> str:
        return f"<CogroupedKStream of {self._records.names}>"

    @property
    def _record_serdes(self) -> RecordSerdes:
        return self._records.record_serdes

    @calls(aggregator="key, value, aggregate")
    def cogroup(
        self, grouped: KGroupedStream[K, V], aggregator: Aggregator[K, V, VR], *, returns: type[VR] | None = None
    ) -> CogroupedKStream[K, VR]:
        """Adds a grouped stream, whose records ``aggregator(key, value, aggregate)`` adds to the aggregate.

        A stream that is there already gets that aggregator instead of the one it had. ``returns`` is the type of the
        aggregate, where the aggregator is not annotated to return it.
        """
        from pykstreams.dsl.grouped import KGroupedStream

        if not isinstance(grouped, KGroupedStream):
            raise TypeError(
                f"a grouped stream is cogrouped with {grouped!r}; expected a KGroupedStream (KStream.group_by_key or "
                "KStream.group_by makes one)"
            )
        self._records.add(grouped._records, aggregator, returns)
        return self

    @calls(initializer="")
    def aggregate(
        self,
        initializer: Initializer[VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Aggregates each key from ``initializer()`` by the aggregators of all streams; ``None`` deletes.

        The serdes of the table are those of ``materialized``, or else of the types that the streams and the functions
        agree on, or else the defaults: which of the streams would have the right ones is nothing that could be told.
        """
        records = self._records
        serdes = records.key_serde(), records.value_serde(initializer)
        store = table_store(records.graph, options_of(materialized), AGGREGATE, *serdes, of_records=True)

        def operator(aggregator: OneAggregator[K, VR], old: bool) -> OperatorSupplier:
            return store.expiring(StreamAggregate(store.name, initializer, aggregator, old))

        return KTable(records.aggregated(name, store, operator, StoredView, store.key_serde))

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[K, VR]: ...
    @overload
    def windowed_by(self, windows: Windows[Window] | SlidingWindows) -> TimeWindowedCogroupedKStream[K, VR]: ...
    def windowed_by(
        self, windows: Windows[Window] | SlidingWindows | SessionWindows
    ) -> TimeWindowedCogroupedKStream[K, VR] | SessionWindowedCogroupedKStream[K, VR]:
        """Divides the records of each key into windows of time, or into sessions."""
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(self._records, windows)
        return TimeWindowedCogroupedKStream(self._records, windows)


class TimeWindowedCogroupedKStream(TellsWhere, Generic[K, VR]):
    """Cogrouped streams with time or sliding windows: one aggregate a key and window.

    Records with null key are dropped, with sliding windows also those with null value. Late is a record by the time
    that has been seen in its own stream: a window that is closed to the records of one stream may be open to those of
    another, until the store drops it. Late records count as dropped. Results are forwarded as they change. Source:
    ``TimeWindowedCogroupedKStream``, 4.3.1.
    """

    _elsewhere = TO_A_COGROUPED_RESULT

    def __init__(self, records: CogroupedRecords[K, VR], windows: Windows[Window] | SlidingWindows) -> None:
        self._records = records
        self._windows = checked_windows(windows)

    def __repr__(self) -> str:
        return f"<TimeWindowedCogroupedKStream of {self._records.names}, {described_windows(self._windows)}>"

    @property
    def _record_serdes(self) -> RecordSerdes:
        return self._records.record_serdes

    @calls(initializer="")
    def aggregate(
        self,
        initializer: Initializer[VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates each key and window from ``initializer()`` by the aggregators of all streams; ``None`` deletes."""
        records, windows = self._records, self._windows
        serdes = records.key_serde(), records.value_serde(initializer)
        store = window_table_store(
            records.graph, options_of(materialized), AGGREGATE, *serdes, windows, EmitStrategy.ON_WINDOW_UPDATE
        )

        def operator(aggregator: OneAggregator[K, VR], old: bool) -> OperatorSupplier:
            return window_operator(windows, store.name, Aggregation(initializer, aggregator), old)

        key_serde, closing = windowed_key_serde(store), WindowClosing(windows.grace_period_ms)
        return KTable(records.aggregated(name, store, operator, WindowedView, key_serde, closing))


class SessionWindowedCogroupedKStream(TellsWhere, Generic[K, VR]):
    """Cogrouped streams with session windows: one aggregate a key and session.

    Records of all streams keep a session going. Those with null key are dropped; late is a record by the time that has
    been seen in its own stream, and counts as dropped. Source: ``SessionWindowedCogroupedKStream``, 4.3.1.
    """

    _elsewhere = TO_A_COGROUPED_RESULT

    def __init__(self, records: CogroupedRecords[K, VR], windows: SessionWindows) -> None:
        self._records = records
        self._windows = windows

    def __repr__(self) -> str:
        return f"<SessionWindowedCogroupedKStream of {self._records.names}, {described_windows(self._windows)}>"

    @property
    def _record_serdes(self) -> RecordSerdes:
        return self._records.record_serdes

    @calls(initializer="", session_merger="key, aggregate, other")
    def aggregate(
        self,
        initializer: Initializer[VR],
        session_merger: Merger[K, VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates each key and session from ``initializer()`` by the aggregators of all streams; ``None`` deletes.

        Before, ``session_merger(key, aggregate, other)`` adds the sessions that merge, one by one in order of time, to
        what ``initializer()`` gave.
        """
        records, windows = self._records, self._windows
        serdes = records.key_serde(), records.value_serde(initializer)
        store = session_table_store(
            records.graph, options_of(materialized), AGGREGATE, *serdes, windows, EmitStrategy.ON_WINDOW_UPDATE
        )

        def operator(aggregator: OneAggregator[K, VR], old: bool) -> OperatorSupplier:
            return SessionAggregate(
                store.name, windows, SessionAggregation(initializer, aggregator, session_merger), old
            )

        key_serde = None if store.key_serde is None else over_default(store.key_serde, SessionWindowedSerde)
        closing = WindowClosing(windows.grace_period_ms + windows.inactivity_gap_ms)
        return KTable(records.aggregated(name, store, operator, StoredView, key_serde, closing))
