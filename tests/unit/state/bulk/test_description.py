"""What makes state readable: the kind of each store, its lengths, its serdes; nothing that varies from run to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pykstreams.core.types import Headers
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import LongSerde, StringSerde
from pykstreams.state import StateStore, Stores, StoreSupplier
from pykstreams.state.buffers.join_buffer import join_buffer
from pykstreams.state.buffers.suppression_buffer import suppression_buffer
from pykstreams.state.bulk.description import describe_store
from pykstreams.state.encoding.layout import TIMESTAMPED
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.windows.suppliers import RowOrder, TimeOrderedWindowSupplier
from tests.unit.state.bulk.bulk_support import CONFIG

TEXT = StringSerde()


def key_value(key_serde: Any = TEXT, value_serde: Any = TEXT) -> StoreBuilder[Any]:
    supplier = Stores.persistent_timestamped_key_value_store("store")
    return Stores.timestamped_key_value_store_builder(supplier, key_serde, value_serde)


class Own(StateStore):
    """A store that a user has written; it is only built here."""

    name = "store"
    persistent = True
    is_open = False

    def init(self, context: Any, root: Any) -> None: ...

    def close(self) -> None: ...


class OwnSupplier(StoreSupplier[Any]):
    name = "store"
    metrics_scope = "own"

    def get(self) -> Own:
        return Own()


class OwnSerde:
    """A serde that does not say what it is."""

    def serializer(self, topic: str, data: Any, headers: Headers) -> bytes: ...  # type: ignore[empty-body]

    def deserializer(self, topic: str, data: bytes, headers: Headers) -> Any: ...


@dataclass
class Order:
    """A type that a serde names."""

    amount: int


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        (key_value(), ("key-value", "timestamped", True)),
        (
            Stores.key_value_store_builder(Stores.in_memory_key_value_store("store"), TEXT, TEXT),
            ("key-value", "plain", False),
        ),
        (
            Stores.window_store_builder(Stores.persistent_window_store("store", 100, 10), TEXT, TEXT),
            ("window", "plain", True),
        ),
        (
            Stores.session_store_with_headers_builder(
                Stores.persistent_session_store_with_headers("store", 100), TEXT, TEXT
            ),
            ("session", "sessions with headers", True),
        ),
        (
            Stores.versioned_key_value_store_builder(
                Stores.persistent_versioned_key_value_store("store", 100), TEXT, TEXT
            ),
            ("versioned", "plain", True),
        ),
        (join_buffer("store", TEXT, TEXT, grace_ms=5, topic="join"), ("buffer", "its own", True)),
        (suppression_buffer("store", TEXT, TEXT), ("other", "its own", False)),
        (StoreBuilder(OwnSupplier()), ("other", "its own", False)),
    ],
    ids=lambda value: None if isinstance(value, StoreBuilder) else value[0],
)
def test_kind_and_layout_of_a_store(builder: StoreBuilder[Any], expected: tuple[str, str, bool]) -> None:
    found = describe_store(builder, CONFIG, 0, None)

    assert (found.kind, found.layout, found.in_files) == expected


def test_lengths_are_part_of_it() -> None:
    builder = Stores.window_store_builder(Stores.persistent_window_store("store", 200_000, 10), TEXT, TEXT)

    assert describe_store(builder, CONFIG, 0, None).shape == {
        "window_size_ms": 10,
        "retention_period_ms": 200_000,
        "segment_interval_ms": 100_000,
        "retain_duplicates": 0,
        "in_order_of_time": 0,
        "reads_keys_by_segment": 0,
    }


@pytest.mark.parametrize(
    ("order", "described"),
    [(RowOrder.BY_SEGMENT, (0, 0)), (RowOrder.BY_TIME, (1, 0)), (RowOrder.BY_TIME_AND_INDEX, (1, 1))],
)
def test_order_of_rows_is_described_by_the_names_that_older_files_have(
    order: RowOrder, described: tuple[int, int]
) -> None:
    supplier = TimeOrderedWindowSupplier("store", 200_000, 10, False, TIMESTAMPED, order)
    shape = describe_store(Stores.timestamped_window_store_builder(supplier, TEXT, TEXT), CONFIG, 0, None).shape

    assert (shape["in_order_of_time"], shape["reads_keys_by_segment"]) == described


def test_serdes_are_named_without_modules_and_addresses() -> None:
    def serdes(builder: StoreBuilder[Any]) -> tuple[str, str]:
        found = describe_store(builder, CONFIG, 0, None)
        return found.key_serde, found.value_serde

    assert serdes(key_value(OwnSerde(), JsonSerde(Order))) == serdes(key_value(OwnSerde(), JsonSerde(Order)))
    assert serdes(key_value(OwnSerde()))[0] == "OwnSerde"
    assert "Order" in serdes(key_value(TEXT, JsonSerde(Order)))[1]
    assert "test_description" not in "".join(serdes(key_value(OwnSerde(), JsonSerde(Order))))
    assert serdes(key_value(LongSerde())) != serdes(key_value())


def test_serdes_that_nobody_gave_are_those_of_the_configuration() -> None:
    found = describe_store(key_value(None, None), CONFIG, 0, None)

    assert (found.key_serde, found.value_serde) == (repr(StringSerde()), repr(JsonSerde()))
    bare = CONFIG.replace({"default.key.serde": None, "default.value.serde": None})
    assert describe_store(key_value(None, None), bare, 0, None).key_serde == "none"
