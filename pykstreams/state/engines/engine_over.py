"""An engine over an engine: it passes on what it does not alter."""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.state.interfaces.engine import Engine


class EngineOver:
    """The methods of ``Engine`` that most engines over another leave as they are."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.persistent = engine.persistent

    @property
    def uncommitted_bytes(self) -> int:
        return self._engine.uncommitted_bytes

    @property
    def property_value(self) -> Callable[[str], int | None] | None:
        """Reads a property of the database; ``None`` where there is none."""
        found: Callable[[str], int | None] | None = getattr(self._engine, "property_value", None)
        return found

    @property
    def statistics(self) -> Callable[[], str | None] | None:
        """Reads the statistics of the database; ``None`` where there is none."""
        found: Callable[[], str | None] | None = getattr(self._engine, "statistics", None)
        return found

    def drop(self, lower: bytes, upper: bytes) -> None:
        self._engine.drop(lower, upper)

    def end_restore(self) -> None:
        self._engine.end_restore()

    def commit(self, offset: int | None) -> None:
        self._engine.commit(offset)

    def committed_offset(self) -> int | None:
        return self._engine.committed_offset()

    def flushed_offset(self) -> int | None:
        return self._engine.flushed_offset()

    def approximate_num_entries(self) -> int:
        return self._engine.approximate_num_entries()

    def close(self) -> None:
        self._engine.close()
