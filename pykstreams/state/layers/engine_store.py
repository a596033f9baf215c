"""The base of stores over an engine: their name and life cycle, without puts and reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.state.encoding.changelog_rows import ChangelogColumns
from pykstreams.state.encoding.layout import PLAIN, Layout
from pykstreams.state.interfaces.engine import Engine, Row
from pykstreams.state.interfaces.store import ChangelogRow, TaskStore


class EngineStore(TaskStore):
    """A store whose rows lie in one engine; ``init`` of a subclass opens the engine and says so by ``_open``."""

    can_be_released = True
    layout: Layout = PLAIN

    logged_from: int | None = None
    """From which byte on a key of the engine is that of the changelog; ``None`` where that does not tell row by row
    what the engine holds."""

    def __init__(self, name: str, engine: Engine) -> None:
        self._name = name
        self._engine = engine
        self._open = False
        self._has_rows_open = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def persistent(self) -> bool:
        return self._engine.persistent

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def uncommitted_bytes(self) -> int:
        """About how many bytes wait for the next commit, those in a cache apart."""
        return self._engine.uncommitted_bytes

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._engine.write(self.layout.restored(ChangelogColumns.of(rows)))

    def restore_keys(self, rows: Sequence[ChangelogRow]) -> None:
        """Puts all records that there are of some keys, key after key, those of a key in order of time."""
        self.restore(rows)

    def engine_rows(self) -> Iterator[Row]:
        """Every row below the cache, in the order of the keys of the engine."""
        return self._engine.scan(None, None, False)

    def end_restore(self) -> None:
        self._engine.end_restore()

    @property
    def observed_time(self) -> int:
        """The highest time that was put, -1 before the first; always -1 for stores that keep rows for ever."""
        return -1

    def advance(self, time: int) -> None:
        """Observes a time that was put elsewhere: what is too old by it is dropped with the next commit."""

    def flush_cache(self) -> None:
        """There is no cache."""

    def commit(self, changelog_offset: int | None) -> None:
        self._engine.commit(changelog_offset)

    def committed_offset(self) -> int | None:
        return self._engine.committed_offset()

    def flushed_offset(self) -> int | None:
        return self._engine.flushed_offset()

    def release(self) -> None:
        self._leave_task()
        self._has_rows_open = True

    def close(self) -> None:
        if self._open or self._has_rows_open:
            self._leave_task()
            self._has_rows_open = False
            self._engine.close()

    def _leave_task(self) -> None:
        """Closes what lies above the engine."""
        self._open = False

    def _check_open(self) -> None:
        if not self._open:
            self._closed()

    def _closed(self, *_: object) -> NoReturn:
        raise InvalidStateStoreError(
            f"store {self._name!r} is not open: it belongs to a task that was closed, moved, or not yet started; "
            "ask the context for the store again"
        )
