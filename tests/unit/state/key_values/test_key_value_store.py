"""The key-value store as users see it, over every engine and combination of layers."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import ConfigError, InvalidStateStoreError, SerdeError, WrongTypeError
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import KeyValueStore, Stores, ValueAndTimestamp, ValueTimestampHeaders
from tests.unit.state.support import KINDS, NAME, Context, Kind, opened, public_value, rows

PLAIN = Kind("plain", "memory", False, False)
TIMESTAMPED = Kind("timestamped", "memory", False, False)
HEADERS = Kind("headers", "memory", False, False)

every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    context = Context(tmp_path)
    context.record(5)
    return context


@every_kind
def test_mapping_protocol_reads_and_writes_like_a_dict(kind: Kind, context: Context) -> None:
    store = opened(kind, context)
    value = public_value(kind, {"n": 1}, 3)

    store["a"] = value

    assert store["a"] == value
    assert "a" in store
    del store["a"]
    assert "a" not in store
    with pytest.raises(KeyError):
        store["a"]
    with pytest.raises(KeyError):
        del store["a"]
    store.close()


@every_kind
def test_get_gives_the_default_for_an_absent_key(kind: Kind, context: Context) -> None:
    store = opened(kind, context)

    assert store.get("a") is None
    assert store.get("a", "nothing") == "nothing"
    store.close()


@every_kind
def test_null_keys_are_refused(kind: Kind, context: Context) -> None:
    store = opened(kind, context)
    value = public_value(kind, 1, 1)
    calls: list[Any] = [
        lambda: store.get(None),
        lambda: store.put(None, value),
        lambda: store.put_if_absent(None, value),
        lambda: store.put_all([("a", value), (None, value)]),
        lambda: store.delete(None),
        lambda: store.get_row(None),
        lambda: store.take_row(None),
        lambda: store.put_row(None, 1, 1),
        lambda: store.keep_row(None, 1, 1),
        lambda: store.keep_row(None, None, 1),
    ]

    for call in calls:
        with pytest.raises(TypeError, match=r"key for store 'orders' is None; a key must not be None"):
            call()
    assert rows(store.all()) == []
    store.close()


@every_kind
def test_putting_none_deletes(kind: Kind, context: Context) -> None:
    store = opened(kind, context)
    store.put("a", public_value(kind, 1, 1))
    store.put("a", None)
    store.put_row("b", 1, 1)
    store.put_row("b", None, 2)
    store.keep_row("c", 1, 1)
    store.keep_row("c", None, 2)

    assert rows(store.all()) == []
    store.close()


@every_kind
def test_iterators_say_whose_rows_they_have_and_whether_they_are_closed(kind: Kind, context: Context) -> None:
    store = opened(kind, context)

    with store.all() as found:
        assert repr(found) == f"<KeyValueIterator over store {store.name!r}>"

    assert repr(found) == f"<KeyValueIterator over store {store.name!r}, closed>"
    store.close()


@every_kind
def test_iterators_see_the_moment_they_were_made(kind: Kind, context: Context) -> None:
    store = opened(kind, context)
    for key in "abc":
        store.put(key, public_value(kind, key, 1))
    store.flush_cache()
    store.commit(1)
    store.put("bb", public_value(kind, "bb", 1))

    with store.all() as found:
        store.put("a", None)
        store.put("cc", public_value(kind, "cc", 1))
        store.flush_cache()
        store.commit(2)
        keys = [key for key, _ in found]

    assert keys == ["a", "b", "bb", "c"]
    store.close()


def test_iterators_see_the_moment_they_were_made_over_rows_of_another_layout(context: Context) -> None:
    supplier = Stores.persistent_key_value_store(NAME)
    builder = Stores.timestamped_key_value_store_builder(supplier, StringSerde(), StringSerde(), caching=False)
    store = builder.build()
    store.init(context)
    store.put("a", ValueAndTimestamp("old", 1))
    with store.all() as found:
        store.put("a", ValueAndTimestamp("new", 1))
        store.put("b", ValueAndTimestamp("new", 1))

        assert [(key, value.value) for key, value in found] == [("a", "old")]
    store.close()


@every_kind
def test_rows_handed_out_can_be_changed_without_effect_on_the_store(kind: Kind, context: Context) -> None:
    store = opened(kind, context)
    store.put_row("a", {"n": 1}, 1)
    store.get_row("a")[0]["n"] = 2
    store.keep_row("b", {"n": 1}, 1)
    store.get_row("b")[0]["n"] = 2
    mine = {"n": 1}
    store.put_row("c", mine, 1)
    mine["n"] = 2

    assert [store.get_row(key)[0] for key in "abc"] == [{"n": 1}] * 3
    store.close()


@every_kind
def test_restored_rows_are_not_logged_and_are_what_was_logged(kind: Kind, context: Context, tmp_path: Path) -> None:
    store = opened(kind, context)
    headers = (("h", b"1"),)
    store.restore([(b"a", b"1", 7, headers), (b"b", b"2", 8, ()), (b"a", b"3", 9, headers), (b"b", None, 10, ())])

    assert context.logged == []
    expected_time = None if kind.store == "plain" else 9
    expected_headers = headers if kind.store == "headers" else ()
    assert list(store.raw_rows()) == [(b"a", b"3", expected_time, expected_headers)]
    store.close()


def test_values_of_timestamped_stores_are_value_and_timestamp(context: Context) -> None:
    store = opened(TIMESTAMPED, context)
    store.put("a", ValueAndTimestamp(1, 7))

    assert store.get("a") == ValueAndTimestamp(1, 7)
    assert store.get_row("a") == (1, 7)
    store.put("a", ValueAndTimestamp(None, 8))
    assert store.get("a") is None


def test_values_of_stores_with_headers_carry_them_and_rows_of_operators_have_none(context: Context) -> None:
    store = opened(HEADERS, context)
    context.record(5, headers=(("from", b"record"),))
    store.put("a", ValueTimestampHeaders(1, 7, (("h", b"x"),)))
    store.put_row("b", 2, 8)

    assert store.get("a") == ValueTimestampHeaders(1, 7, (("h", b"x"),))
    assert store.get("b") == ValueTimestampHeaders(2, 8, ())


def test_plain_value_is_refused_by_a_timestamped_store(context: Context) -> None:
    store = opened(TIMESTAMPED, context)

    with pytest.raises(WrongTypeError, match=r"'orders' keeps timestamps and was given 5; put ValueAndTimestamp\("):
        store.put("a", 5)


def test_value_without_headers_is_refused_by_a_store_with_headers(context: Context) -> None:
    store = opened(HEADERS, context)

    with pytest.raises(WrongTypeError, match=r"keeps timestamps and headers .* put ValueTimestampHeaders\("):
        store.put("a", ValueAndTimestamp(5, 1))


@every_kind
def test_closed_store_tells_that_it_is_not_open(kind: Kind, context: Context) -> None:
    store = opened(kind, context)
    store.close()
    store.close()

    assert not store.is_open
    calls: tuple[Callable[[], object], ...] = (
        lambda: store.get("a"),
        lambda: store.put("a", None),
        lambda: store.all(),
        lambda: store.get_row("a"),
        lambda: store.put_row("a", 1, 1),
        lambda: store.approximate_num_entries(),
    )
    for call in calls:
        with pytest.raises(InvalidStateStoreError, match=r"store 'orders' is not open.*ask the context"):
            call()


def test_range_with_swapped_bounds_is_empty_and_warns(context: Context, caplog: pytest.LogCaptureFixture) -> None:
    store = opened(PLAIN, context)
    store.put("b", 1)

    with caplog.at_level(logging.WARNING):
        found = rows(store.range("c", "a"))

    assert found == []
    assert "range of store 'orders' from 'c' to 'a' is empty" in caplog.text


def test_type_says_how_a_prefix_is_written(context: Context) -> None:
    store = opened(PLAIN, context)
    store.put_all([("a1", 1), ("b1", 2), ("a2", 3)])

    assert rows(store.prefix_scan("a", str)) == [("a1", 1), ("a2", 3)]


def test_prefix_scan_needs_a_prefix(context: Context) -> None:
    store = opened(PLAIN, context)

    with pytest.raises(TypeError, match=r"prefix for store 'orders' is None; use all\(\)"):
        store.prefix_scan(None, StringSerde())
    with pytest.raises(TypeError, match=r"prefix 'a' for store 'orders' was serialized to None"):
        store.prefix_scan("a", lambda prefix: None)


def test_prefix_scan_of_an_operator_goes_on_behind_a_row_that_cannot_be_read(context: Context) -> None:
    store = opened(Kind("timestamped", "memory", False, True), context)
    store.restore([(b"a1", b"1", 5, ()), (b"a2", b"{", 5, ()), (b"a3", b"3", 5, ())])
    found = store.rows_by_prefix(StringSerde())("a")

    assert next(found) == ("a1", 1, 5)
    with pytest.raises(SerdeError):
        next(found)
    assert list(found) == [("a3", 3, 5)]


def test_prefix_of_greatest_bytes_finds_the_last_keys(context: Context) -> None:
    store = PLAIN.builder(key_serde=_Bytes()).build()
    store.init(context)
    for key in (b"\xfe", b"\xff", b"\xff\xff"):
        store.put(key, 1)

    assert [key for key, _ in store.prefix_scan(b"\xff", _Bytes())] == [b"\xff", b"\xff\xff"]


def test_iterator_left_open_warns(context: Context) -> None:
    store = opened(PLAIN, context)
    store.put("a", 1)
    store.put("b", 1)
    left = store.all()
    next(left)

    with pytest.warns(ResourceWarning, match="an iterator over store 'orders' was left open"):
        del left
        gc.collect()


def test_iterator_read_to_its_end_closes_by_itself(context: Context) -> None:
    store = opened(PLAIN, context)
    store.put("a", 1)
    found = store.all()

    assert found.peek_next_key() == "a"
    assert next(found) == ("a", 1)
    with pytest.raises(StopIteration):
        next(found)
    with pytest.raises(StopIteration):
        found.peek_next_key()


def test_closed_iterator_is_refused(context: Context) -> None:
    store = opened(PLAIN, context)
    store.put("a", 1)
    with store.all() as found:
        pass

    with pytest.raises(InvalidStateStoreError, match="this iterator over store 'orders' is closed; ask for a new one"):
        next(found)


def test_store_without_serde_and_default_tells_what_to_set(context: Context) -> None:
    builder = PLAIN.builder()
    store: KeyValueStore[Any, Any] = type(builder)(builder.supplier, builder.make, StringSerde(), None).build()

    with pytest.raises(ConfigError, match=r"store 'orders' of task 0_1 has no value serde.*set default\.value\.serde"):
        store.init(context)


def test_default_serdes_of_the_configuration_are_taken(tmp_path: Path) -> None:
    context = Context(tmp_path, {"default.key.serde": StringSerde(), "default.value.serde": StringSerde()})
    context.record(1)
    builder = PLAIN.builder()
    store: KeyValueStore[Any, Any] = type(builder)(builder.supplier, builder.make).build()
    store.init(context)
    store.put("a", "b")

    assert list(store.raw_rows()) == [(b"a", b"b", None, ())]  # type: ignore[attr-defined]


@every_kind
def test_value_that_cannot_be_serialized_changes_nothing(kind: Kind, context: Context) -> None:
    store = opened(kind, context)
    with pytest.raises(SerdeError):
        store.put_row("a", object(), 1)

    assert store.get_row("a") is None
    assert context.logged == []
    store.close()


class _Bytes:
    """A serde of bytes as they are."""

    def __init__(self) -> None:
        self.serializer = self.deserializer = self

    def serialize(self, topic: str, data: bytes | None, headers: Any = None) -> bytes | None:
        return data

    deserialize = serialize
