"""``Materialized(time_to_live=)``: the index beside the store of a table, and what stands around its operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TopologyError
from pykstreams.core.names import valid_name
from pykstreams.core.processor import PunctuationType
from pykstreams.core.types import duration_ms
from pykstreams.dsl.options import Materialized
from pykstreams.processors import ExpiringTable, RowsOfRecords
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.buffers.expiry_index import expiry_index
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class IndexStore:
    """The index of a table: a ``StoreFactory`` that keeps it in memory where the table is ``in_memory``."""

    name: str
    key_serde: SerdeOrDefault
    logging: bool
    in_memory: Callable[[StreamsConfig], bool]

    def builder(self, config: StreamsConfig) -> StoreBuilder[TaskStore]:
        return expiry_index(self.name, self.key_serde, in_memory=self.in_memory(config), logging=self.logging)


@dataclass(frozen=True, slots=True)
class Expiry:
    """When the rows of one table go, and the index in which they are found then."""

    time_to_live_ms: int
    clock: PunctuationType
    index: IndexStore

    def around(self, table: RowsOfRecords, store: str, *, takes_record_time: bool) -> ExpiringTable:
        """The operator ``table`` with rows that go; see ``ExpiringTable``."""
        return ExpiringTable(table, store, self.index.name, self.time_to_live_ms, self.clock, takes_record_time)


def expiry_of(
    store: str, options: Materialized[K, V], key_serde: SerdeOrDefault, in_memory: Callable[[StreamsConfig], bool]
) -> Expiry | None:
    """The expiry that the options ask for; ``None`` where rows stay.

    The name of the index takes no number from the counter, so that asking for it renames nothing.
    """
    if options.time_to_live is None:
        return None
    index = IndexStore(valid_name(f"{store}-time-to-live"), key_serde, options.logging, in_memory)
    return Expiry(duration_ms(options.time_to_live, "time_to_live"), options.time_to_live_by, index)


def refuse_time_to_live(options: Materialized[K, V], why: str) -> None:
    """Raises ``TopologyError`` where the options ask for a time to live, saying why rows cannot have one."""
    if options.time_to_live is not None:
        raise TopologyError(
            f"{options!r} asks for a time to live, but {why}. It is for StreamsBuilder.table, KStream.to_table and "
            "aggregations of streams without windows; tables that are made of such a table follow it"
        )
