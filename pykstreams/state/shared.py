"""A store that one thread writes while others read it: the two views of a global store.

``SharedStore`` is for the processor that writes, ``ReadOnlyStore`` for everybody else. Both are the store itself in all
but two things: every call, and every step of an iterator, is made with a lock held; and what changes the store is
refused to those who may only read (``AbstractReadOnlyDecorator``, 4.3.1). ``isinstance`` answers for the
store, so that users find the kind they expect.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final

from pykstreams.core.errors import StreamsError

_CHANGES: Final = frozenset(
    (
        *("put", "put_if_absent", "put_all", "delete", "remove", "put_row", "take_row", "keep_row", "on_flush"),
        *("init", "restore", "end_restore", "flush_cache", "evict_eldest", "commit", "close"),
    )
)


class SharedStore:
    """The store as its writer sees it."""

    __slots__ = ("_lock", "_store")

    def __init__(self, store: Any, lock: AbstractContextManager[object]) -> None:
        self._store = store
        self._lock = lock

    @property  # type: ignore[misc]  # that of object can be set
    def __class__(self) -> type[Any]:
        """The kind of the store."""
        return type(self._store)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._locked(found) if callable(found) else found

    @property
    def get_row(self) -> Callable[[Any], Any]:
        """The callable that reads a row of a key-value store, for joins: called for every record."""
        lock, get_row = self._lock, self._store.get_row

        def read(key: Any) -> Any:
            with lock:
                return get_row(key)

        return read

    def __getitem__(self, key: Any) -> Any:
        with self._lock:
            return self._store[key]

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self._store

    def __setitem__(self, key: Any, value: Any) -> None:
        with self._lock:
            self._store[key] = value

    def __delitem__(self, key: Any) -> None:
        with self._lock:
            del self._store[key]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r})"

    def _locked(self, method: Callable[..., Any]) -> Callable[..., Any]:
        lock = self._lock

        def call(*arguments: Any, **keywords: Any) -> Any:
            with lock:
                found = method(*arguments, **keywords)
            return _LockedIterator(found, lock) if hasattr(found, "__next__") else found

        return call


class ReadOnlyStore(SharedStore):
    """The store as everybody else sees it.

    :param topic: what feeds it, to be named to those who want to write.
    """

    __slots__ = ("_topic",)

    def __init__(self, store: Any, lock: AbstractContextManager[object], topic: str) -> None:
        super().__init__(store, lock)
        self._topic = topic

    def __getattr__(self, name: str) -> Any:
        return self._refusal(name) if name in _CHANGES else super().__getattr__(name)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._refusal("put")()

    def __delitem__(self, key: Any) -> None:
        self._refusal("delete")()

    def _refusal(self, name: str) -> Callable[..., Any]:
        def refuse(*arguments: Any, **keywords: Any) -> Any:
            raise StreamsError(
                f"{name} of store {self._store.name!r} is refused: it is a global store, which tasks may only read; "
                f"write to its topic {self._topic!r} instead, and every worker gets the change"
            )

        return refuse


class _LockedIterator:
    """An iterator over a shared store; a context manager as the one below it."""

    __slots__ = ("_lock", "_rows")

    def __init__(self, rows: Any, lock: AbstractContextManager[object]) -> None:
        self._rows = rows
        self._lock = lock

    @property  # type: ignore[misc]  # that of object can be set
    def __class__(self) -> type[Any]:
        """The kind of the iterator below."""
        return type(self._rows)

    def __iter__(self) -> _LockedIterator:
        return self

    def __next__(self) -> Any:
        with self._lock:
            return next(self._rows)

    def __getattr__(self, name: str) -> Any:
        found, lock = getattr(self._rows, name), self._lock
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            with lock:
                return found(*arguments)

        return call

    def __enter__(self) -> _LockedIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._rows.close()
