"""Aggregations in windows of time: the operator for each kind of windows, and the keys of the table."""

from __future__ import annotations

from typing import TypeVar

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.windows import EmitStrategy, SlidingWindows, Window, Windows
from pykstreams.dsl.stores.window_materialization import WindowTableStore
from pykstreams.processors import Aggregation, SlidingAggregate, WindowAggregate
from pykstreams.serdes.defaults import SerdeOrDefault, over_default
from pykstreams.serdes.windowed import TimeWindowedSerde

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")


def window_operator(
    windows: Windows[Window] | SlidingWindows,
    store: str,
    aggregation: Aggregation[K, V, VA],
    send_old_values: bool,
    strategy: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE,
    late_child: str | None = None,
    idle_ms: int | None = None,
) -> OperatorSupplier:
    """The operator that aggregates in windows of this kind."""
    if isinstance(windows, SlidingWindows):
        return SlidingAggregate(store, windows, aggregation, send_old_values, strategy, late_child, idle_ms)
    return WindowAggregate(store, windows, aggregation, send_old_values, strategy, late_child, idle_ms)


def windowed_key_serde(store: WindowTableStore) -> SerdeOrDefault:
    """The serde of the keys of a table with that store, ``None`` where that of its plain keys is the default."""
    if store.key_serde is None:
        return None
    return over_default(store.key_serde, lambda keys: TimeWindowedSerde(keys, store.window_size_ms))


def checked_windows(windows: Windows[Window] | SlidingWindows) -> Windows[Window] | SlidingWindows:
    """Returns windows of time if streams can be aggregated in them; raises ``TypeError`` or ``ValueError`` if not."""
    if isinstance(windows, SlidingWindows) and windows.time_difference_ms == 0:
        raise ValueError(f"sliding windows are {windows!r}; give them a time difference of at least 1 ms")
    if isinstance(windows, Windows | SlidingWindows):
        return windows
    raise TypeError(
        f"windows are {windows!r}; expected TimeWindows, SlidingWindows, SessionWindows, UnlimitedWindows or a "
        "Windows of your own"
    )
