"""Factories of stores and what the DSL is given."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from pykstreams.core.windows import EmitStrategy
from pykstreams.state import (
    BuiltInDslStoreSuppliers,
    DslKeyValueParams,
    DslStoreFormat,
    DslWindowParams,
    StoreBuilder,
    Stores,
)


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
    ("strategy", "sliding", "form", "by_time", "keys_by_segment", "headers"),
    [
        (EmitStrategy.ON_WINDOW_UPDATE, True, DslStoreFormat.TIMESTAMPED, False, False, False),
        (EmitStrategy.ON_WINDOW_UPDATE, False, DslStoreFormat.HEADERS, False, False, True),
        (EmitStrategy.ON_WINDOW_CLOSE, False, DslStoreFormat.TIMESTAMPED, True, False, False),
        (EmitStrategy.ON_WINDOW_CLOSE, True, DslStoreFormat.PLAIN, True, True, False),
        (EmitStrategy.ON_WINDOW_CLOSE, True, DslStoreFormat.HEADERS, True, True, True),
    ],
)
def test_windows_that_are_emitted_on_close_are_kept_in_order_of_time(
    strategy: EmitStrategy, sliding: bool, form: DslStoreFormat, by_time: bool, keys_by_segment: bool, headers: bool
) -> None:
    wanted = DslWindowParams("w", 300_000, 10, False, strategy, sliding, form)
    on_disk = BuiltInDslStoreSuppliers.ROCKS_DB.window_store(wanted)
    in_memory = BuiltInDslStoreSuppliers.IN_MEMORY.window_store(wanted)

    assert (on_disk.in_order_of_time, on_disk.reads_keys_by_segment) == (by_time, keys_by_segment)
    assert (on_disk.with_headers, on_disk.metrics_scope) == (headers, "rocksdb-window")
    assert (on_disk.segment_interval_ms, on_disk.retention_ms) == (150_000, 300_000)
    assert (in_memory.in_order_of_time, in_memory.metrics_scope) == (True, "in-memory-window")
