"""A store seen in another way: its life is that of the store below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.state.interfaces.store import ChangelogRow, FlushListener, StoreContext, TaskStore


class StoreWithCache(Protocol):
    """The part of a store that is the same for all kinds that may have a cache."""

    @property
    def name(self) -> str: ...
    @property
    def persistent(self) -> bool: ...
    @property
    def is_open(self) -> bool: ...

    def init(self, context: StoreContext, root: TaskStore | None = None) -> None: ...
    def restore(self, rows: Sequence[ChangelogRow]) -> None: ...
    def end_restore(self) -> None: ...
    def flush_cache(self) -> None: ...
    def commit(self, changelog_offset: int | None) -> None: ...
    def committed_offset(self) -> int | None: ...
    def close(self) -> None: ...
    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool: ...


S = TypeVar("S", bound=StoreWithCache)


class StoreView(Generic[S]):
    """The methods that every kind of view passes to the store unchanged."""

    def __init__(self, store: S) -> None:
        self._store = store

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def persistent(self) -> bool:
        return self._store.persistent

    @property
    def is_open(self) -> bool:
        return self._store.is_open

    def init(self, context: StoreContext, root: TaskStore | None = None) -> None:
        self._store.init(context)

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._store.restore(rows)

    def end_restore(self) -> None:
        self._store.end_restore()

    def flush_cache(self) -> None:
        self._store.flush_cache()

    def commit(self, changelog_offset: int | None) -> None:
        self._store.commit(changelog_offset)

    def committed_offset(self) -> int | None:
        return self._store.committed_offset()

    def close(self) -> None:
        self._store.close()

    def last_put(self, sink: SerializedSink) -> None:
        """Rows are forwarded as objects: what is watched may alter them."""

    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        return self._store.on_flush(listener, send_old_values, sink)
