"""``Table``: what a step that makes a table adds to the graph, and what a ``KTable`` is made of."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams.dsl.place import Place
from pykstreams.dsl.stores.materialization import DslStore
from pykstreams.dsl.stores.table_logic import TableLogic
from pykstreams.topology.graph import is_versioned


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of the script: where it is in the graph, how it is computed, and the store that holds its rows.

    Without a ``store`` the rows are kept only as far as ``logic`` needs them, and nobody can query them.
    """

    place: Place
    logic: TableLogic
    store: DslStore | None = None

    def __post_init__(self) -> None:
        if self.store is not None and self.place.partitioner is not None:
            self.place.graph.partitioners[self.store.name] = self.place.partitioner

    @property
    def history_ms(self) -> int | None:
        """For how long the table can be read as it was; ``None`` for one that is not versioned."""
        return self.logic.history_ms if is_versioned(self.place.node) else None

    @property
    def queryable_store_name(self) -> str | None:
        """The name under which the rows can be queried, ``None`` where they cannot."""
        return None if self.store is None else self.store.queryable_name
