"""An engine over an engine: it passes on what it does not alter."""

from __future__ import annotations

from pykstreams.state.interfaces.engine import Engine


class EngineOver:
    """The methods of ``Engine`` that most engines over another leave as they are."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.persistent = engine.persistent

    @property
    def uncommitted_bytes(self) -> int:
        return self._engine.uncommitted_bytes

    def property_value(self, name: str) -> int | None:
        return self._engine.property_value(name)

    def statistics(self) -> str | None:
        return self._engine.statistics()

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
