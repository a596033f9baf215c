"""One open store of this process, as somebody reads it who is not its task.

Invariant: the store is touched inside of its gate only, also by iterators, which read a chunk of rows at a time there.
A store that is closed meanwhile, or taken up by another task, is an ``InvalidStateStoreError`` at the next read, never
an end of rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, Protocol, TypeVar, cast

from pykstreams.core.errors import StateStoreMigratedError
from pykstreams.core.record import KeyValue
from pykstreams.state.interfaces.query_results import QueryResult
from pykstreams.state.interfaces.store import KeyValueIterator, TaskStore
from pykstreams.state.interfaces.versioned_store import VersionedRecordIterator
from pykstreams.state.interfaces.window_store import WindowStoreIterator

T = TypeVar("T")

FIRST_ROWS: Final = 64
"""How many rows an iterator reads at first; then twice as many each time, up to ``MOST_ROWS``."""

MOST_ROWS: Final = 1024


class Reading(Protocol):
    """Runs reads while nobody else touches the store: the gate of a task, or the lock of the global stores."""

    def read(self, action: Callable[[], T]) -> T:
        """Waits, and runs a read."""
        ...

    def soon(self, action: Callable[[], None], then: Callable[[], None], reads: int) -> bool:
        """Runs short reads that do not raise, at once or when the store is free; does not wait.

        Returns false, and does not run them, where too many are waiting already.

        :param then, reads: see ``Gate.soon``.
        """
        ...


class LocalStore:
    """A store of a task, or a global one; ``read`` is the one way to it.

    :param where: names it in errors.
    :param find: gives the store, inside of its gate; ``None`` when it is not open.
    :param whole: whether iterators read all their rows at once, since the database below may be opened anew.
    :param check: raises what keeps the store from being read so, or any further.
    """

    __slots__ = ("_check", "_find", "_reading", "name", "where", "whole")

    def __init__(
        self,
        name: str,
        where: str,
        reading: Reading,
        find: Callable[[], TaskStore | None],
        *,
        whole: bool = False,
        check: Callable[[object], None] = lambda store: None,
    ) -> None:
        self.name = name
        self.where = where
        self.whole = whole
        self._reading = reading
        self._find = find
        self._check = check

    def checked(self, check: Callable[[Any], None]) -> LocalStore:
        """The same store, with a check before each read, and before each chunk of rows."""
        return LocalStore(self.name, self.where, self._reading, self._find, whole=self.whole, check=check)

    def in_chunks(self) -> LocalStore:
        """The same store with iterators that read chunks; for who is done with them within one ``turn``."""
        return LocalStore(self.name, self.where, self._reading, self._find, check=self._check)

    def read(self, action: Callable[[Any], T]) -> T:
        """Runs ``action(store)`` while nobody else touches the store; iterators that it gives can be used afterwards.

        ``StateStoreMigratedError`` when the store is not open any more.
        """

        def inside() -> object:
            store = self._opened()
            return self._for_later(store, action(store.public_view))

        return cast("T", self._reading.read(inside))

    def view(self) -> Any:
        """The store as ``read`` gives it to its action, for one inside of the gate."""
        return self._opened().public_view

    def turn(self, action: Callable[[], T]) -> T:
        """Runs something of an iterator while nobody else touches the store."""
        return self._reading.read(action)

    def soon(self, action: Callable[[], None], then: Callable[[], None], reads: int) -> bool:
        """Runs short reads that do not raise while nobody else touches the store, and does not wait for that.

        Returns false, and does not run them, where too many are waiting already.

        :param then, reads: see ``Gate.soon``.
        """
        return self._reading.soon(action, then, reads)

    def gone(self) -> StateStoreMigratedError:
        """The error for a store that is not open any more."""
        return StateStoreMigratedError(
            f"{self.where} is not open: its task was closed, is being made ready, or has moved to another instance; "
            "ask again, or ask the instance that has it now"
        )

    def find(self) -> TaskStore | None:
        """The store, for one inside of the gate; ``None`` when it is not open."""
        return self._find()

    def check(self, store: TaskStore) -> None:
        """Raises what keeps the open store from being read so, or any further; for one inside of the gate."""
        self._check(store.public_view)

    def _opened(self) -> TaskStore:
        store = self._find()
        if store is None:
            raise self.gone()
        self.check(store)
        return store

    def _for_later(self, store: TaskStore, found: object) -> object:
        if isinstance(found, KeyValueIterator):
            kind = WindowStoreIterator if isinstance(found, WindowStoreIterator) else KeyValueIterator
            return kind(_Rows(self, store, found), KeyValue, self.name)
        if isinstance(found, VersionedRecordIterator):
            return VersionedRecordIterator(iter(list(found)), self.name)
        if isinstance(found, QueryResult) and found.is_success:
            return found.with_result(self._for_later(store, found.result))
        return found


class _Rows(Iterator[KeyValue[object, object]]):
    """The rows of an iterator over a store, chunk by chunk; made inside of the gate."""

    __slots__ = ("_error", "_local", "_ready", "_rows", "_size", "_store")

    def __init__(self, local: LocalStore, store: TaskStore, rows: KeyValueIterator[object, object]) -> None:
        self._local = local
        self._store = store
        self._rows: KeyValueIterator[object, object] | None = rows
        self._ready: deque[KeyValue[object, object]] = deque()
        self._size = FIRST_ROWS
        self._error: BaseException | None = None
        self._fill()

    def __next__(self) -> KeyValue[object, object]:
        if self._error is not None and not self._ready:
            raise self._error
        if not self._ready and self._rows is not None:
            self._local.turn(self._fill)
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    def close(self) -> None:
        self._ready.clear()
        if self._rows is not None:
            self._local.turn(self._let_go)

    def _fill(self) -> None:
        rows, local = self._rows, self._local
        if rows is None:
            return
        try:
            if local.find() is not self._store:
                raise local.gone()
            local.check(self._store)
            self._ready.extend(rows if local.whole else islice(rows, self._size))
        except BaseException as error:
            self._error = error
            self._let_go()
            raise
        if local.whole or len(self._ready) < self._size:
            self._let_go()
        self._size = min(2 * self._size, MOST_ROWS)

    def _let_go(self) -> None:
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()
