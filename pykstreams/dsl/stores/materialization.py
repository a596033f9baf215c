"""From a user's ``Materialized`` to a store that the topology can make once the configuration is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pykstreams.core.config import StreamsConfig
from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import K, V
from pykstreams.dsl.options import Materialized, expected
from pykstreams.dsl.stores.time_to_live import Expiry, expiry_of, refuse_time_to_live
from pykstreams.processors import RowsOfRecords
from pykstreams.serdes.combined_key import prefix_width
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault, over_default
from pykstreams.serdes.partial_windows import PartialWindowSerde
from pykstreams.state.dsl_suppliers import DslKeyValueParams, DslStoreFormat, DslStoreSuppliers
from pykstreams.state.encoding.layout import PLAIN
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.key_values.suppliers import KeyValueBytesStoreSupplier, PersistentKeyValueSupplier
from pykstreams.state.spec import StoreBuilder, StoreSupplier
from pykstreams.state.suppliers import Stores
from pykstreams.state.versions.suppliers import VersionedBytesStoreSupplier
from pykstreams.topology.graph import Graph
from pykstreams.topology.stores import StoreFactory


@dataclass(frozen=True, slots=True)
class DslStore:
    """The base of the stores of the DSL: each is a ``StoreFactory`` with a name, which may be generated.

    ``queryable`` says that the user named it; others exist only where an operator needs them.
    """

    name: str
    queryable: bool
    key_serde: SerdeOrDefault
    value_serde: SerdeOrDefault
    supplier: StoreSupplier[object] | None
    store_type: DslStoreSuppliers | None
    caching: bool
    logging: bool
    topic_config: Mapping[str, str]

    @property
    def queryable_name(self) -> str | None:
        """The name if the store can be queried by it, ``None`` for one that exists only because something needs it."""
        return self.name if self.queryable else None

    @property
    def history_ms(self) -> int | None:
        """How long old versions are kept; ``None`` for a store that is not versioned."""
        return None if self.supplier is None else self.supplier.history_retention_ms

    @property
    def indexes(self) -> tuple[StoreFactory, ...]:
        """The stores beside it in which its rows are found; they are committed before it."""
        return ()

    def _suppliers(self, config: StreamsConfig) -> DslStoreSuppliers:
        return self.store_type or config.dsl_store_suppliers

    def _builder(
        self,
        make: Callable[..., StoreBuilder[TaskStore]],
        supplier: StoreSupplier[object],
        retention_ms: int | None = None,
    ) -> StoreBuilder[TaskStore]:
        """The builder over the supplier; the changelog keeps windows and sessions for ``retention_ms``, whatever the
        supplier says (``StoreFactory.retentionPeriod``, 4.3.1).
        """
        made = make(
            supplier,
            self.key_serde,
            self.value_serde,
            caching=self.caching,
            logging=self.logging,
            topic_config=self.topic_config,
        )
        return replace(made, changelog_retention_ms=retention_ms)


@dataclass(frozen=True, slots=True)
class TableStore(DslStore):
    """The store of a table; one that is versioned has no cache (``KeyValueStoreMaterializer``, 4.3.1)."""

    supplier: KeyValueBytesStoreSupplier | None
    expiry: Expiry | None = None

    @property
    def indexes(self) -> tuple[StoreFactory, ...]:
        return () if self.expiry is None else (self.expiry.index,)

    def expiring(self, table: RowsOfRecords, *, takes_record_time: bool = False) -> OperatorSupplier:
        """The operator that makes its rows: the one given, or another one around it if they have a time to live."""
        if self.expiry is None:
            return table
        return self.expiry.around(table, self.name, takes_record_time=takes_record_time)

    def is_in_memory(self, config: StreamsConfig) -> bool:
        """Whether its rows do not outlive the process."""
        return not self._chosen(config).get().persistent

    def _chosen(self, config: StreamsConfig) -> KeyValueBytesStoreSupplier:
        params = table_params(self.name, self.key_serde, config)
        return self.supplier or self._suppliers(config).key_value_store(params)

    def builder(self, config: StreamsConfig) -> StoreBuilder[TaskStore]:
        supplier = self._chosen(config)
        if isinstance(supplier, VersionedBytesStoreSupplier):
            return replace(self, caching=False)._builder(Stores.versioned_key_value_store_builder, supplier)
        if supplier.with_headers:
            return self._builder(Stores.timestamped_key_value_store_with_headers_builder, supplier)
        return self._builder(Stores.timestamped_key_value_store_builder, supplier)


def table_params(name: str, key_serde: object, config: StreamsConfig) -> DslKeyValueParams:
    """The store that is asked for where keys have that serde; scans by prefix know it where it has parts."""
    if isinstance(key_serde, OverDefault):
        key_serde = None if config["default.key.serde"] is None else key_serde.wrap(config.default_key_serde)
    return DslKeyValueParams(name, store_format(config), prefix_width(key_serde))


def store_format(config: StreamsConfig) -> DslStoreFormat:
    """The format of the stores of tables: with timestamps, and with headers if the configuration says so."""
    headers = config.dsl_store_format.upper() == DslStoreFormat.HEADERS.value.upper()
    return DslStoreFormat.HEADERS if headers else DslStoreFormat.TIMESTAMPED


def options_of(materialized: Materialized[K, V] | str | None) -> Materialized[K, V]:
    """Reads what a user gave: options, or just the name of the store; ``TypeError`` for anything else."""
    if isinstance(materialized, str):
        return Materialized(materialized)
    inside = "supplier" if isinstance(materialized, StoreSupplier) else "key_serde=..., value_serde=..."
    write = f"Materialized({inside}), or the name of a store"
    return expected("materialized", materialized, Materialized, write) or Materialized()


def named_table_store(
    options: Materialized[K, V], key_serde: SerdeOrDefault = None, value_serde: SerdeOrDefault = None
) -> TableStore | None:
    """The store that the user named, ``None`` where no name was given.

    Its serdes are those of the options or else the given ones, which are those of types, or else the defaults; never
    those of the table above (``KTableImpl.doFilter``, 4.3.1).
    """
    refuse_time_to_live(options, "its rows are made of the rows of another table")
    name = options.store_name
    return None if name is None else _table_store(name, options, True, key_serde, value_serde)


def table_store(
    graph: Graph,
    options: Materialized[K, V],
    prefix: str,
    key_serde: SerdeOrDefault,
    value_serde: SerdeOrDefault,
    *,
    of_records: bool = False,
) -> TableStore:
    """The store that the user named, or one with a generated name; the serdes are those to fall back on.

    Only rows that are made ``of_records``, each of those of its key, may have a time to live.
    """
    if not of_records:
        refuse_time_to_live(options, "its rows are not made of the records of their keys, or stand in a global table")
    name, queryable = named_or_generated(graph, options, prefix)
    return _table_store(name, options, queryable, key_serde, value_serde)


def partial_window_store(
    graph: Graph,
    options: Materialized[K, V],
    prefix: str,
    key_serde: SerdeOrDefault,
    value_serde: SerdeOrDefault,
) -> tuple[TableStore, SerdeOrDefault]:
    """The store of count windows that are not full, and the serde of those that are."""
    refuse_time_to_live(options, "windows of so many records wait until they are full")
    name, queryable = named_or_generated(graph, options, prefix)
    results = options.value_serde or value_serde
    kept = over_default(results, PartialWindowSerde)
    return _table_store(name, options.replace(value_serde=None), queryable, key_serde, kept), results


def join_store(
    name: str, key_serde: SerdeOrDefault, value_serde: SerdeOrDefault, store_type: DslStoreSuppliers | None = None
) -> TableStore:
    """A store that a join needs for itself, with a changelog; it has no cache, so that what is read was forwarded."""
    return TableStore(name, False, key_serde, value_serde, None, store_type, False, True, {})


def named_or_generated(graph: Graph, options: Materialized[K, V], prefix: str) -> tuple[str, bool]:
    """The name of a store, and whether the user gave it (``MaterializedInternal``, 4.3.1)."""
    name = options.store_name
    if name is not None:
        return name, True
    name = graph.namer.store(prefix)
    graph.implicit_names.add_store(name, logging=options.logging)
    return name, False


def _table_store(
    name: str,
    options: Materialized[K, V],
    queryable: bool,
    key_serde: SerdeOrDefault,
    value_serde: SerdeOrDefault,
) -> TableStore:
    supplier = options.store if not isinstance(options.store, str) else None
    if supplier is not None and not isinstance(supplier, KeyValueBytesStoreSupplier):
        raise TypeError(
            f"store of a table is {supplier!r}; expected a name or a supplier of a key-value store, such as "
            "Stores.persistent_timestamped_key_value_store(name)"
        )
    if supplier is not None and supplier.history_retention_ms is not None:
        refuse_time_to_live(options, "its store is versioned, and keeps what a row was for its history retention")
    if isinstance(supplier, PersistentKeyValueSupplier) and supplier.layout is PLAIN:
        refuse_time_to_live(
            options, "its store keeps no timestamps; take Stores.persistent_timestamped_key_value_store"
        )
    store = TableStore(
        name,
        queryable,
        options.key_serde or key_serde,
        options.value_serde or value_serde,
        supplier,
        options.store_type,
        options.caching,
        options.logging,
        dict(options.topic_config or {}),
    )
    return replace(store, expiry=expiry_of(name, options, store.key_serde, store.is_in_memory))
