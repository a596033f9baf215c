"""Forwarding of the changes of a table: by the operator that made them, or by the cache of its store.

Invariant: each change of a stored table leaves its operator exactly once. Without a cache the operator hands
it on as it happens; with one, the cache does when it flushes or evicts the key, and keeps only the last of
several changes (``TimestampedTupleForwarder`` and ``TimestampedCacheFlushListener``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.serialized_sink import SendSerialized
from pykstreams.core.types import Change, Forward, Headers
from pykstreams.processors.process import Process
from pykstreams.processors.stores import table_rows
from pykstreams.processors.tables.table_view import Compute
from pykstreams.state.interfaces.operator_stores import FlushesToListener, LastPut, TableRows
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

Emit: TypeAlias = Callable[[object, object, object, int, Headers, bool | None], None]
"""(key, new value, old value, timestamp, headers, what ``put_row`` gave: is it the newest version of its key?)"""


def forwarder(
    store: FlushesToListener, context: OperatorContext, send_old_values: bool, children: Forward | None = None
) -> Emit | None:
    """Makes the function that forwards a change of this store's table; ``None`` where the store's cache does it.

    Called once, while the operator is built. Without ``send_old_values`` the old value is left out. ``children`` takes
    the changes where not all children are to see them. What a versioned store did not put is not forwarded.
    """
    children = context.forward if children is None else children
    forward = context.current.following(children)

    def emit_both(key: object, new: object, old: object, timestamp: int, headers: Headers, newest: bool | None) -> None:
        forward(key, (new, old, newest), timestamp, headers)

    def emit_new(key: object, new: object, old: object, timestamp: int, headers: Headers, newest: bool | None) -> None:
        forward(key, (new, None, newest), timestamp, headers)

    def emit_put(key: object, new: object, old: object, timestamp: int, headers: Headers, newest: bool | None) -> None:
        if newest is not None:
            forward(key, (new, old if send_old_values else None, newest), timestamp, headers)

    if isinstance(store, VersionedKeyValueStore):
        return emit_put
    sink = context.serialized_sink if children is context.forward else None
    if store.on_flush(children, send_old_values, sink):
        return None
    last_put = None if sink is None or send_old_values else store.last_put(sink)
    if sink is not None and last_put is not None:
        return _emit_in_bytes(forward, sink.send_one, last_put)
    return emit_both if send_old_values else emit_new


def _emit_in_bytes(forward: Forward, send: SendSerialized, last_put: LastPut) -> Emit:
    """Sends a row in the bytes that were made when it was put."""

    def emit(key: object, new: object, old: object, timestamp: int, headers: Headers, newest: bool | None) -> None:
        value = last_put.value
        if value is None:
            forward(key, (new, None, newest), timestamp, headers)
        else:
            send(last_put.key, value, timestamp, headers)

    return emit


def kept_rows(make: Compute[K, V, VR], name: str, send_old_values: bool, context: OperatorContext) -> Process:
    """Makes an operator that keeps ``make(key, new value)`` of each change in a store and forwards it; old values are
    those of the store.
    """
    store: TableRows[K, VR] = table_rows(context, name)
    get_row, put_row, emit = store.get_row, store.put_row, forwarder(store, context, send_old_values)
    fail = context.fail

    def process(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
        old = None
        try:
            new = make(key, change[0])
            if send_old_values:
                row = get_row(key)
                old = None if row is None else row[0]
            newest = put_row(key, new, timestamp)
        except Exception as error:
            fail(error, key, change, timestamp, headers)
            return
        if emit is not None:
            emit(key, new, old, timestamp, headers, newest)

    return process
