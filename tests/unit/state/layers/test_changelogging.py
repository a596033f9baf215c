"""What a changelog gets for each write."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykstreams.core.errors import ProcessorStateError
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import Stores, ValueAndTimestamp, ValueTimestampHeaders
from tests.unit.state.support import Context, Kind, opened


@pytest.fixture
def context(tmp_path: Path) -> Context:
    context = Context(tmp_path)
    context.record(5, headers=(("of", b"record"),))
    return context


def test_plain_rows_have_the_time_of_the_current_record(context: Context) -> None:
    store = opened(Kind("plain", "memory", False, True), context)
    store.put("a", 1)
    context.record(3)
    store.delete("a")
    store.put("never", None)

    assert context.logged == [(b"a", b"1", 5, ()), (b"a", None, 3, ()), (b"never", None, 3, ())]


def test_timestamped_rows_have_their_own_time_and_deletes_that_of_the_record(context: Context) -> None:
    store = opened(Kind("timestamped", "memory", False, True), context)
    store.put("a", ValueAndTimestamp(1, 77))
    store.put_row("b", 2, 78)
    store.put("a", None)

    assert context.logged == [(b"a", b"1", 77, ()), (b"b", b"2", 78, ()), (b"a", None, 5, ())]


def test_rows_with_headers_have_their_own_and_deletes_those_of_the_record(context: Context) -> None:
    store = opened(Kind("headers", "memory", False, True), context)
    store.put("a", ValueTimestampHeaders(1, 77, (("h", None),)))
    store.delete("a")

    assert context.logged == [(b"a", b"1", 77, (("h", None),)), (b"a", None, 5, (("of", b"record"),))]


def test_put_if_absent_is_logged_only_when_the_key_was_absent(context: Context) -> None:
    store = opened(Kind("plain", "memory", False, True), context)
    store.put_if_absent("a", 1)
    store.put_if_absent("a", 2)

    assert context.logged == [(b"a", b"1", 5, ())]


def test_evicted_row_of_a_plain_lru_map_is_deleted_from_the_changelog_before_the_new_one_is_written(
    context: Context,
) -> None:
    store = Stores.key_value_store_builder(Stores.lru_map("recent", 2), StringSerde(), JsonSerde()).build()
    store.init(context)
    store.put("a", 1)
    store.put("b", 2)
    store.get("a")
    store.put("c", 3)

    assert [key for key, _ in store.all()] == ["a", "c"]
    assert context.logged == [(b"a", b"1", 5, ()), (b"b", b"2", 5, ()), (b"b", None, 5, ()), (b"c", b"3", 5, ())]


def test_evicted_row_of_a_timestamped_lru_map_stays_in_the_changelog(context: Context) -> None:
    """As in Kafka Streams, which hides the map from the logging layer in this case."""
    store = Stores.timestamped_key_value_store_builder(Stores.lru_map("recent", 1), StringSerde(), JsonSerde()).build()
    store.init(context)
    store.put_row("a", 1, 1)
    store.put_row("b", 2, 2)

    assert context.logged == [(b"a", b"1", 1, ()), (b"b", b"2", 2, ())]


def test_restoring_an_lru_map_evicts_without_logging(context: Context) -> None:
    store = Stores.key_value_store_builder(Stores.lru_map("recent", 1), StringSerde(), JsonSerde()).build()
    store.init(context)
    store.restore([(b"a", b"1", 1, ()), (b"b", b"2", 2, ())])

    assert [key for key, _ in store.all()] == ["b"]
    assert context.logged == []


def test_write_without_a_current_record_tells_where_to_write_from(context: Context) -> None:
    store = opened(Kind("plain", "memory", False, True), context)
    context.current.raw = None

    with pytest.raises(ProcessorStateError, match=r"store 'orders' was written while no record.*not from init\(\)"):
        store.put("a", 1)


def test_store_without_changelog_is_written_without_a_current_record(context: Context) -> None:
    store = opened(Kind("plain", "memory", False, False), context)
    context.current.raw = None
    store.put("a", 1)

    assert store.get("a") == 1
