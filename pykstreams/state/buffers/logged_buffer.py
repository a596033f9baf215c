"""The base of buffers whose rows go to a changelog at once, with neither time nor headers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pykstreams.core.errors import ProcessorStateError
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.engines.durable import durable
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.interfaces.store import ChangelogRow, ChangelogWriter, RawRow, StoreContext, TaskStore
from pykstreams.state.layers.engine_store import EngineStore
from pykstreams.state.layers.store_serdes import bound_codec
from pykstreams.state.spec import StoreSupplier

BufferSerdes: TypeAlias = tuple[SerdeOrDefault, SerdeOrDefault]
"""Of keys and of values; ``None`` for the default of the configuration."""


class LoggedBuffer(EngineStore):
    """A store of one operator, whose rows are what waits.

    :param owner: who has it wait, for error messages, such as "join".
    :param topic: what serdes get as their topic, ``None`` for that of the changelog.
    """

    def __init__(
        self,
        name: str,
        serdes: BufferSerdes,
        engine: Engine,
        *,
        owner: str,
        topic: str | None = None,
        logging: bool = True,
    ) -> None:
        super().__init__(name, engine)
        self._serdes = serdes
        self._owner = owner
        self._topic = topic
        self._logging = logging
        self._log: ChangelogWriter | None = None
        self._begun = False

    def init(self, context: StoreContext, root: TaskStore | None = None) -> None:
        codec = bound_codec(self._name, *self._serdes, self.layout, context, topic=self._topic)
        self._encode_key, self._decode_key = codec.encode_key, codec.decode_key
        self._encode, self._decode = codec.encode_value, codec.decode_value
        self._current = context.current
        self._engine.open(context)
        self._log = context.changelog(self._name) if self._logging else None
        self._open = True

    def raw_rows(self) -> Iterator[RawRow]:
        """Every row, as it is kept."""
        for key, packed in self._engine.scan(None, None, False):
            yield key, packed, None, ()

    def approximate_num_entries(self) -> int:
        """About how many rows there are."""
        return self._engine.approximate_num_entries()

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._begun = False
        super().restore(rows)

    def _leave_task(self) -> None:
        self._begun = False
        super()._leave_task()

    def _begin(self) -> None:
        """Finds, before the first use, what waits from before."""
        if not self._begun:
            self._check_open()
            self._take_up()
            self._begun = True

    @abstractmethod
    def _take_up(self) -> None:
        """Finds out from the engine how far the buffer had come."""

    def _write_log(self, row_key: bytes, packed: bytes | None) -> None:
        if self._log is not None:
            self._log(row_key, packed, None, ())

    def _unreadable(self, row_key: bytes, error: ValueError) -> ProcessorStateError:
        """The error for a row that this buffer has not written."""
        owner = self._owner
        return ProcessorStateError(
            f"store {self._name!r}: the row of key {row_key!r} is no record that waits for a {owner}: {error}. Was "
            f"its changelog written by something else? Reset the application, or give the {owner} another name"
        )


class BufferSupplier(StoreSupplier[Engine]):
    """Makes the engine of a buffer."""

    metrics_scope = "rocksdb"

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self) -> Engine:
        return durable(self.name)
