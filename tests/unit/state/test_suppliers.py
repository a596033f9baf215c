"""Factories of stores and what the DSL is given."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.windows import EmitStrategy
from pykstreams.dsl.stores.materialization import table_params
from pykstreams.serdes import CombinedKeySerde, JsonCombinedKeySerde, Serdes
from pykstreams.serdes.by_type import TYPES
from pykstreams.serdes.defaults import OverDefault
from pykstreams.serdes.told_topic import ToldTopic
from pykstreams.state import (
    BuiltInDslStoreSuppliers,
    DslKeyValueParams,
    DslStoreFormat,
    DslWindowParams,
    RocksDBDslStoreSuppliers,
    StoreBuilder,
    Stores,
)
from pykstreams.state.windows.suppliers import RowOrder
from tests.unit.state.support import Context


def test_builder_tells_what_it_was_given_and_cannot_be_changed() -> None:
    builder = Stores.key_value_store_builder(
        Stores.in_memory_key_value_store("orders"), caching=True, logging=False, topic_config={"retention.ms": "1"}
    )

    assert (builder.name, builder.caching, builder.logging_enabled) == ("orders", True, False)
    assert builder.topic_config == {"retention.ms": "1"}
    assert (builder.retention_ms, builder.history_retention_ms) == (None, None)
    with pytest.raises(FrozenInstanceError):
        builder.caching = False  # type: ignore[misc]
    assert isinstance(replace(builder, logging=True), StoreBuilder)


def test_each_build_gives_a_store_of_its_own() -> None:
    builder = Stores.key_value_store_builder(Stores.in_memory_key_value_store("orders"))

    assert builder.build() is not builder.build()


def test_builder_needs_a_supplier_of_key_value_stores() -> None:
    with pytest.raises(TypeError, match=r"supplier of a key-value store is 'orders'; expected one such as Stores\."):
        Stores.key_value_store_builder("orders")  # type: ignore[arg-type]


def test_types_stand_for_the_serdes_of_a_store() -> None:
    supplier = Stores.in_memory_key_value_store("orders")

    builder = Stores.key_value_store_builder(supplier, str, dict[str, int])

    assert (builder.key_serde, builder.value_serde) == (TYPES.serde(str, is_key=True), TYPES.serde(dict[str, int]))


def test_type_without_a_serde_is_refused_with_the_name_of_the_store() -> None:
    with pytest.raises(TypeError, match=r"store 'orders': there is no serde for object"):
        Stores.session_store_builder(Stores.in_memory_session_store("orders", 10), str, object)


def test_name_of_a_store_is_text() -> None:
    with pytest.raises(TypeError, match="name of a store is 5; expected text"):
        Stores.in_memory_key_value_store(5)  # type: ignore[arg-type]


def test_lru_map_needs_a_size_that_is_not_negative() -> None:
    with pytest.raises(ValueError, match="max_cache_size of store 'recent' is -1; it must not be negative"):
        Stores.lru_map("recent", -1)


@pytest.mark.parametrize(
    ("supplier", "scope", "headers"),
    [
        (Stores.persistent_key_value_store("s"), "rocksdb", False),
        (Stores.persistent_timestamped_key_value_store("s"), "rocksdb", False),
        (Stores.persistent_timestamped_key_value_store_with_headers("s"), "rocksdb", True),
        (Stores.in_memory_key_value_store("s"), "in-memory", False),
        (Stores.lru_map("s", 5), "in-memory-lru", False),
    ],
)
def test_suppliers_have_the_scopes_of_kafka_streams(supplier: object, scope: str, headers: bool) -> None:
    assert supplier.metrics_scope == scope  # type: ignore[attr-defined]
    assert supplier.with_headers is headers  # type: ignore[attr-defined]


def test_dsl_stores_come_in_the_format_asked_for() -> None:
    rocks = BuiltInDslStoreSuppliers.ROCKS_DB
    supplied = {
        each: rocks.key_value_store(DslKeyValueParams("s", each)) == expected
        for each, expected in (
            (DslStoreFormat.PLAIN, Stores.persistent_key_value_store("s")),
            (DslStoreFormat.TIMESTAMPED, Stores.persistent_timestamped_key_value_store("s")),
            (DslStoreFormat.HEADERS, Stores.persistent_timestamped_key_value_store_with_headers("s")),
        )
    }

    assert all(supplied.values())
    in_memory = BuiltInDslStoreSuppliers.IN_MEMORY.key_value_store(DslKeyValueParams("s", DslStoreFormat.TIMESTAMPED))
    assert in_memory == Stores.in_memory_key_value_store("s")


def test_store_format_is_found_in_any_case() -> None:
    assert DslStoreFormat("headers") is DslStoreFormat.HEADERS
    with pytest.raises(ValueError, match="'compact' is not a valid DslStoreFormat"):
        DslStoreFormat("compact")


@pytest.mark.parametrize(
    ("strategy", "sliding", "form", "order", "headers"),
    [
        (EmitStrategy.ON_WINDOW_UPDATE, True, DslStoreFormat.TIMESTAMPED, RowOrder.BY_SEGMENT, False),
        (EmitStrategy.ON_WINDOW_UPDATE, False, DslStoreFormat.HEADERS, RowOrder.BY_SEGMENT, True),
        (EmitStrategy.ON_WINDOW_CLOSE, False, DslStoreFormat.TIMESTAMPED, RowOrder.BY_TIME, False),
        (EmitStrategy.ON_WINDOW_CLOSE, True, DslStoreFormat.PLAIN, RowOrder.BY_TIME_AND_INDEX, False),
        (EmitStrategy.ON_WINDOW_CLOSE, True, DslStoreFormat.HEADERS, RowOrder.BY_TIME_AND_INDEX, True),
    ],
)
def test_windows_that_are_emitted_on_close_are_kept_in_order_of_time(
    strategy: EmitStrategy, sliding: bool, form: DslStoreFormat, order: RowOrder, headers: bool
) -> None:
    wanted = DslWindowParams("w", 300_000, 10, False, strategy, sliding, form)
    on_disk = BuiltInDslStoreSuppliers.ROCKS_DB.window_store(wanted)
    in_memory = BuiltInDslStoreSuppliers.IN_MEMORY.window_store(wanted)

    assert on_disk.row_order is order
    assert (on_disk.with_headers, on_disk.metrics_scope) == (headers, "rocksdb-window")
    assert (on_disk.segment_interval_ms, on_disk.retention_ms) == (150_000, 300_000)
    assert (in_memory.row_order, in_memory.metrics_scope) == (RowOrder.BY_TIME, "in-memory-window")


@pytest.mark.parametrize(
    ("serde", "prefix_bytes"),
    [
        (CombinedKeySerde(Serdes.long(), Serdes.string()), 12),
        (CombinedKeySerde(Serdes.uuid(), Serdes.string()), 40),
        (CombinedKeySerde(ToldTopic(Serdes.integer(), "fk"), Serdes.string()), 8),
        (Serdes.long(), 3),
    ],
)
def test_store_looks_for_prefixes_that_all_its_keys_have(serde: Any, prefix_bytes: int) -> None:
    supplier = Stores.persistent_key_value_store("orders", prefix_bytes=prefix_bytes)

    assert Stores.key_value_store_builder(supplier, serde, Serdes.string()).build().name == "orders"


@pytest.mark.parametrize(
    ("serde", "told"),
    [
        (Serdes.string(), r"StringSerde\(encoding='utf-8'\), and not all of its keys have such a prefix"),
        (CombinedKeySerde(Serdes.string(), Serdes.long()), "and not all of its keys have such a prefix"),
        (CombinedKeySerde(Serdes.integer(), Serdes.long()), "and its partial keys have 8"),
        (Serdes.long(), "and not all of its keys have such a prefix"),
        (JsonCombinedKeySerde(), "and not all of its keys have such a prefix"),
    ],
)
def test_store_refuses_prefixes_that_not_all_its_keys_have(serde: Any, told: str) -> None:
    supplier = Stores.persistent_timestamped_key_value_store("orders", prefix_bytes=12)
    builder = Stores.timestamped_key_value_store_builder(supplier, serde, Serdes.string())

    with pytest.raises(ConfigError, match=f"store 'orders' is to find keys by prefixes of 12 bytes, .*{told}; leave"):
        builder.build()


def test_prefixes_are_checked_against_the_default_serde_when_the_store_is_opened(tmp_path: Path) -> None:
    supplier = Stores.persistent_timestamped_key_value_store_with_headers("orders", prefix_bytes=12)
    store = Stores.timestamped_key_value_store_with_headers_builder(supplier, None, Serdes.string()).build()

    with pytest.raises(ConfigError, match="store 'orders' is to find keys by prefixes of 12 bytes"):
        store.init(Context(tmp_path, {"default.key.serde": Serdes.string()}))


def test_prefix_has_a_byte_at_least() -> None:
    with pytest.raises(ValueError, match="prefix_bytes of store 'orders' is 0; a prefix has at least one byte"):
        Stores.persistent_key_value_store("orders", prefix_bytes=0)


def test_stores_of_the_dsl_seek_prefixes_unless_that_is_switched_off() -> None:
    params = DslKeyValueParams("s", prefix_bytes=12)

    assert RocksDBDslStoreSuppliers().key_value_store(params) == Stores.persistent_timestamped_key_value_store(
        "s", prefix_bytes=12
    )
    without = RocksDBDslStoreSuppliers(prefix_seek=False).key_value_store(params)
    assert without == Stores.persistent_timestamped_key_value_store("s")


@pytest.mark.parametrize("default", [None, Serdes.long()])
def test_tables_with_keys_of_two_parts_are_scanned_by_the_first_one(default: Any) -> None:
    over_default = OverDefault(lambda serde: CombinedKeySerde(serde, serde))
    config = StreamsConfig({"default.key.serde": default})

    assert table_params("s", CombinedKeySerde(Serdes.long(), Serdes.string()), config).prefix_bytes == 12
    assert table_params("s", over_default, config).prefix_bytes == (None if default is None else 12)
    assert table_params("s", Serdes.long(), config).prefix_bytes is None
    assert table_params("s", None, config).prefix_bytes is None
