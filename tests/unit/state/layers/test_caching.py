"""The record cache: sizes, order, eviction, what is forwarded and what stays."""

from __future__ import annotations

import weakref
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pykstreams.core.errors import SerializationError
from pykstreams.core.handlers import LogAndContinueProcessingExceptionHandler
from pykstreams.core.record import RecordContext
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.serdes import JsonSerde, StringSerde
from pykstreams.state.layers import caching
from tests.unit.state.support import Context, Flushed, Kind, opened, rows

CACHED = Kind("timestamped", "memory", True, True)
PLAIN = Kind("plain", "memory", True, True)

NODE = 24 + 1
CONTEXT = 8 + 8 + 4 + len("in")


@pytest.fixture
def context(tmp_path: Path) -> Context:
    context = Context(tmp_path)
    context.record(5)
    return context


def listening(kind: Kind, context: Context, *, old: bool = False) -> tuple[Any, Flushed]:
    store = opened(kind, context)
    flushed = Flushed(context)

    assert store.on_flush(flushed, old)
    return store, flushed


def test_store_without_cache_has_no_listener(context: Context) -> None:
    store = opened(Kind("timestamped", "memory", False, True), context)

    assert not store.on_flush(Flushed(context), False)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("method", ["put_row", "keep_row"])
def test_entry_is_as_large_as_in_kafka_streams(context: Context, method: str, old: bool) -> None:
    """Key, list node, dirty flag, timestamp with value, offset, time, partition, topic name and headers."""
    store, _ = listening(CACHED, context, old=old)
    context.record(5, headers=(("name", b"123"), ("none", None)))
    getattr(store, method)("key", [1], 9)

    assert context.cache.size_bytes == 3 + NODE + (8 + 3) + CONTEXT + len("name") + 3 + len("none")


def test_entry_of_a_plain_store_counts_no_timestamp(context: Context) -> None:
    store, _ = listening(PLAIN, context)
    store.put("key", [1])

    assert context.cache.size_bytes == 3 + NODE + 3 + CONTEXT


def test_deleted_entry_counts_no_value_and_leaves_the_cache_when_flushed(context: Context) -> None:
    store, _ = listening(CACHED, context)
    store.put_row("key", None, 9)

    assert context.cache.size_bytes == 3 + NODE + CONTEXT
    store.flush_cache()
    assert context.cache.size_bytes == 0


def test_entry_that_was_read_from_below_counts_no_record(context: Context) -> None:
    store, _ = listening(CACHED, context)
    store.restore([(b"key", b"[1]", 9, ())])
    store.get_row("key")

    assert context.cache.size_bytes == 3 + NODE + (8 + 3) + 20


def test_overwritten_entry_is_counted_once(context: Context) -> None:
    store, _ = listening(CACHED, context)
    for value in ([1], [1, 2, 3], []):
        store.keep_row("key", value, 9)

    assert context.cache.size_bytes == 3 + NODE + (8 + 2) + CONTEXT


def test_flushed_entries_stay_and_are_not_flushed_again(context: Context) -> None:
    store, flushed = listening(CACHED, context)
    store.put_row("a", [1], 9)
    store.flush_cache()
    before = context.cache.size_bytes
    store.flush_cache()

    assert len(flushed.rows) == 1
    assert context.cache.size_bytes == before > 0


def test_entries_are_flushed_in_the_order_of_their_last_put(context: Context) -> None:
    store, flushed = listening(CACHED, context)
    for offset, key in enumerate("abca"):
        context.record(5, offset=offset)
        store.keep_row(key, key * 2, 9 + offset)
    context.record(99, offset=99)
    store.flush_cache()

    assert flushed.rows == [("b", "bb", None, 10, 1), ("c", "cc", None, 11, 2), ("a", "aa", None, 12, 3)]
    assert context.logged == [(b"b", b'"bb"', 10, ()), (b"c", b'"cc"', 11, ()), (b"a", b'"aa"', 12, ())]


def test_current_record_is_put_back_after_a_flush(context: Context) -> None:
    store, _ = listening(CACHED, context)
    store.put_row("a", 1, 9)
    context.record(6, offset=8)
    now = context.current.raw
    store.flush_cache()

    assert context.current.raw is now


def test_current_record_is_put_back_when_forwarding_fails(context: Context) -> None:
    store = opened(CACHED, context)

    def fails(*_: Any) -> None:
        raise RuntimeError("downstream")

    store.on_flush(fails, False)
    store.put_row("a", 1, 9)
    context.record(6, offset=8)
    now = context.current.raw
    with pytest.raises(RuntimeError, match="downstream"):
        store.flush_cache()

    assert context.current.raw is now


@pytest.mark.parametrize("old", [False, True])
def test_delete_of_what_never_was_below_is_neither_forwarded_nor_logged(context: Context, old: bool) -> None:
    store, flushed = listening(CACHED, context, old=old)
    store.put_row("a", 1, 9)
    store.put_row("a", None, 10)
    store.flush_cache()

    assert flushed.rows == []
    assert context.logged == []


def test_delete_of_what_is_not_below_is_forwarded_while_records_may_be_repeated(context: Context) -> None:
    """A worker that died may have written the deletion and not what it was to send."""
    store, flushed = listening(CACHED, context, old=True)
    context.current.replayed = True
    store.put_row("a", None, 5)
    store.flush_cache()

    assert [row[:3] for row in flushed.rows] == [("a", None, None)]


def test_delete_is_forwarded_with_the_time_of_the_record_that_deleted(context: Context) -> None:
    store, flushed = listening(CACHED, context)
    store.restore([(b"a", b"1", 9, ())])
    context.record(6, offset=3)
    store.put_row("a", None, 10)
    context.record(7, offset=4)
    store.flush_cache()

    assert flushed.rows == [("a", None, None, 6, 3)]
    assert context.logged == [(b"a", None, 6, ())]


def test_without_listener_deletes_of_absent_keys_are_logged(context: Context) -> None:
    store = opened(CACHED, context)
    store.put("a", None)
    store.flush_cache()

    assert context.logged == [(b"a", None, 5, ())]


def test_old_values_are_those_below_the_cache(context: Context) -> None:
    store, flushed = listening(CACHED, context, old=True)
    store.restore([(b"a", b"1", 9, ())])
    store.put_row("a", 2, 10)
    store.put_row("a", 3, 11)
    store.put_row("b", 7, 12)
    store.flush_cache()
    store.put_row("a", None, 13)
    store.flush_cache()

    assert [row[:3] for row in flushed.rows] == [("a", 3, 1), ("b", 7, None), ("a", None, 3)]


def entry_bytes(key: str, value_bytes: int) -> int:
    return len(key) + NODE + 8 + value_bytes + CONTEXT


@pytest.mark.parametrize("method", ["put_row", "keep_row"])
def test_eviction_of_a_dirty_entry_flushes_the_whole_cache_the_evicted_entry_first(tmp_path: Path, method: str) -> None:
    context = Context(tmp_path, cache_bytes=3 * entry_bytes("a", 1))
    context.record(5)
    store, flushed = listening(CACHED, context)
    put = getattr(store, method)
    for key in "abc":
        put(key, 1, 9)

    assert flushed.rows == []
    store.get_row("a")
    put("c", 2, 10)
    put("d", 1, 11)
    assert [row[0] for row in flushed.rows] == ["b", "a", "c", "d"]
    assert context.cache.size_bytes == 3 * entry_bytes("a", 1)


def test_entry_read_last_is_evicted_last(tmp_path: Path) -> None:
    context = Context(tmp_path, cache_bytes=3 * entry_bytes("a", 1))
    context.record(5)
    store, flushed = listening(CACHED, context)
    for key in "abc":
        store.put_row(key, 1, 9)
    store.flush_cache()
    for key in "ab":
        store.get_row(key)
    flushed.rows.clear()
    store.put_row("d", 1, 9)
    context.logged.clear()
    store.restore([(bytes([key]), b"9", 1, ()) for key in b"abc"])

    assert [store.get_row(key)[0] for key in "abd"] == [1, 1, 1]
    assert store.get_row("c")[0] == 9


def test_eviction_of_a_clean_entry_flushes_nothing(tmp_path: Path) -> None:
    context = Context(tmp_path, cache_bytes=2 * entry_bytes("a", 1))
    context.record(5)
    store, flushed = listening(CACHED, context)
    store.put_row("a", 1, 9)
    store.flush_cache()
    store.put_row("b", 1, 9)
    store.put_row("c", 1, 9)

    assert [row[0] for row in flushed.rows] == ["a"]


def test_reading_can_evict_and_flush(tmp_path: Path) -> None:
    context = Context(tmp_path, cache_bytes=entry_bytes("a", 1))
    context.record(5)
    store, flushed = listening(CACHED, context)
    store.restore([(b"z", b"1", 1, ())])
    store.put_row("a", 1, 9)
    store.get_row("z")

    assert [row[0] for row in flushed.rows] == ["a"]


@pytest.mark.parametrize("old", [False, True])
def test_cache_of_one_byte_forwards_every_put_at_once(tmp_path: Path, old: bool) -> None:
    context = Context(tmp_path, cache_bytes=1)
    context.record(5)
    store, flushed = listening(CACHED, context, old=old)
    for value in ("1", "1,2", "1,2,3"):
        store.keep_row("a", value, 0)

    assert [row[:2] for row in flushed.rows] == [("a", "1"), ("a", "1,2"), ("a", "1,2,3")]
    assert [row[1] for row in context.logged] == [b'"1"', b'"1,2"', b'"1,2,3"']
    assert context.cache.size_bytes == 0


def test_downstream_cache_evicts_while_the_evicted_entry_upstream_still_counts(tmp_path: Path) -> None:
    """A flush by eviction forwards into a second cache that finds the worker's cache too full, and evicts at once."""
    context = Context(tmp_path, cache_bytes=2 * entry_bytes("a", 1))
    context.record(5)
    first, second = opened(CACHED, context), opened(CACHED, context)
    order: list[tuple[str, Any]] = []
    second.on_flush(lambda key, *_: order.append(("second", key)), False)

    def into_second(key: Any, change: Any, timestamp: int, headers: Any) -> None:
        order.append(("first", key))
        second.put_row(key, change[0], timestamp)

    first.on_flush(into_second, False)
    for key in "abc":
        first.put_row(key, 1, 9)

    assert order == [
        ("first", "a"),
        ("second", "a"),
        ("first", "b"),
        ("second", "b"),
        ("first", "c"),
        ("second", "c"),
    ]


@pytest.mark.parametrize("heard", [False, True])
def test_a_row_that_a_table_source_replaces_is_read_first_and_may_evict_another(context: Context, heard: bool) -> None:
    store, _ = listening(CACHED, context)
    store.put_row("replaced", "a long value", 9)
    store.flush_cache()
    context.cache.max_bytes = 0
    store.put_row("other", 1, 9)
    context.cache.max_bytes = entry_bytes("stays", 1) + entry_bytes("replaced", 1)
    store.put_row("stays", 1, 9)
    if heard:
        store.before_put()("replaced")
    store.put_row("replaced", 1, 9)

    assert (store._cache.cached(b"stays") is None) == heard


def test_without_a_cache_nobody_wants_to_know_what_is_replaced(context: Context) -> None:
    assert opened(Kind("timestamped", "memory", False, True), context).before_put() is None


def add_one(store: Any, key: str) -> None:
    """What an aggregation does whose user changes the aggregate and returns the same object."""
    row = store.take_row(key)
    aggregate = {"n": 0} if row is None else row[0]
    aggregate["n"] += 1
    store.keep_row(key, aggregate, 9)


@pytest.mark.parametrize("measured", [0, 3, 1000])
def test_aggregate_changed_in_place_gives_the_same_records_with_cache_and_without(
    tmp_path: Path, measured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "MEASURED_PUTS", measured)
    monkeypatch.setattr(caching, "SAMPLE_EVERY", 2)
    changelogs = []
    for cached in (False, True):
        context = Context(tmp_path)
        context.record(5)
        store = opened(Kind("timestamped", "memory", cached, True), context)
        downstream: list[Any] = []

        def spoils(key: Any, change: Any, *_: Any, seen: list[Any] = downstream) -> None:
            new = change[0]
            seen.append((key, dict(new)))
            new["n"] = -100

        store.on_flush(spoils, False)
        for step in range(20):
            add_one(store, "ab"[step % 2])
            store.flush_cache()
        changelogs.append(context.logged)
        assert [row[:2] for row in rows(store.all())] == [("a", ({"n": 10}, 9)), ("b", ({"n": 10}, 9))]

    assert changelogs[0] == changelogs[1]


NO_JSON = object()


@pytest.mark.parametrize("leave", ["flush_cache", "evict_eldest"])
@pytest.mark.parametrize("straight", [False, True])
def test_entries_behind_one_that_cannot_be_written_wait_for_the_next_flush(
    context: Context, monkeypatch: pytest.MonkeyPatch, leave: str, straight: bool
) -> None:
    monkeypatch.setattr(caching, "MEASURED_PUTS", 0)
    store = opened(CACHED, context)
    sink = SerializedSink(StringSerde(), JsonSerde(), lambda records: None, lambda *record: None)
    assert store.on_flush(Flushed(context), False, sink if straight else None)
    store.keep_row("a", 1, 9)
    if leave == "evict_eldest":
        store.flush_cache()
        store.evict_eldest()
    store.keep_row("b", NO_JSON, 9)
    store.keep_row("c", 3, 9)
    context.record(7, offset=8)
    size = store.cache_bytes
    with pytest.raises(SerializationError):
        getattr(store, leave)()

    assert store.cache_bytes == size
    assert [row[:2] for row in context.logged] == [(b"a", b"1")]
    store.keep_row("b", 2, 9)
    store.flush_cache()
    assert [row[:2] for row in context.logged[1:]] == [(b"c", b"3"), (b"b", b"2")]
    assert store.get_row("b") == (2, 9)


def test_entries_behind_one_that_could_not_be_forwarded_wait_for_the_next_flush(context: Context) -> None:
    store = opened(CACHED, context)
    forwarded: list[Any] = []

    def refuses_b(key: Any, *_: Any) -> None:
        forwarded.append((key, context.current.context))
        if key == "b":
            raise OSError("below")

    store.on_flush(refuses_b, False)
    for offset, key in enumerate("abcd"):
        context.record(5, offset=offset)
        store.put_row(key, 1, 5)
    context.record(6, offset=9)
    store.put_row("d", 2, 6)
    for _ in range(2):
        with pytest.raises(OSError, match="below"):
            store.flush_cache()
        store.put_row("b", 2, 6)
    store.on_flush(Flushed(context), False)
    store.flush_cache()

    assert [key for key, _ in forwarded] == ["a", "b", "c", "d", "b"]
    assert [where.offset for _, where in forwarded] == [0, 1, 2, 9, 9]
    assert [row[:2] for row in context.logged][-1] == (b"b", b"2")


@pytest.mark.parametrize(
    "settings",
    [
        {"processing.exception.handler": LogAndContinueProcessingExceptionHandler},
        {"errors.dead.letter.queue.topic.name": "dead"},
    ],
    ids=["goes on", "dead letters"],
)
def test_a_value_that_cannot_be_written_fails_with_its_record_where_it_matters_which_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object]
) -> None:
    monkeypatch.setattr(caching, "MEASURED_PUTS", 0)
    context = Context(tmp_path, settings)
    context.record(5)
    store, flushed = listening(CACHED, context)
    for key in ("a", "b"):
        store.keep_row(key, 1, 9)
        with pytest.raises(SerializationError):
            store.keep_row(key, NO_JSON, 9)
    with pytest.raises(SerializationError):
        store.keep_row("c", NO_JSON, 9)
    store.flush_cache()

    assert [row[:2] for row in flushed.rows] == [("a", 1), ("b", 1)]
    assert store.get_row("c") is None


def test_aggregate_changed_in_place_is_written_once_per_flush(context: Context) -> None:
    store, flushed = listening(CACHED, context)
    for _ in range(5):
        add_one(store, "a")
    store.flush_cache()

    assert [row[:2] for row in flushed.rows] == [("a", {"n": 5})]
    assert context.logged == [(b"a", b'{"n":5}', 9, ())]


def test_taken_row_that_is_not_kept_leaves_a_measured_row_as_it_was(context: Context) -> None:
    store, _ = listening(CACHED, context)
    store.keep_row("a", {"n": 1}, 9)
    store.take_row("a")[0]["n"] = 2
    store.flush_cache()

    assert store.get_row("a") == ({"n": 1}, 9)
    assert context.logged == [(b"a", b'{"n":1}', 9, ())]


def test_same_object_comes_back_while_nobody_else_has_read_it(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "MEASURED_PUTS", 0)
    store, _ = listening(CACHED, context)
    aggregate = {"n": 1}
    store.keep_row("a", aggregate, 9)
    store.keep_row("a", aggregate, 9)

    assert store.take_row("a")[0] is aggregate


def test_sizes_after_the_measured_puts_are_the_average_of_samples(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "MEASURED_PUTS", 4)
    store, _ = listening(CACHED, context)
    for number in range(4):
        store.keep_row(f"{number:03}", "xx", 9)
    store.keep_row("new", "a much longer text", 9)

    assert context.cache.size_bytes == 5 * (3 + NODE + 8 + len('"xx"') + CONTEXT)


@pytest.mark.parametrize("reads", [0, 1, 2, 3])
def test_values_that_grow_are_counted_with_what_they_have_grown_to(
    context: Context, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    monkeypatch.setattr(caching, "MEASURED_PUTS", 100)
    store, _ = listening(CACHED, context)
    random = Random(7)
    for size in (10, 1000):
        for number in range(40_000):
            key = f"{random.randrange(100):03}"
            for _ in range(reads):
                store.take_row(key)
            store.keep_row(key, "x" * size, 9)
            if number % 2000 == 0:
                store.flush_cache()

    assert context.cache.size_bytes == pytest.approx(100 * (3 + NODE + 8 + 1002 + CONTEXT), rel=0.1)


def test_many_puts_of_few_keys_do_not_pile_up(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "MEASURED_PUTS", 10)
    store, flushed = listening(CACHED, context)
    for number in range(5000):
        store.put_row("ab"[number % 2], number, 9)

    assert len(store._cache._dirty) < 200
    store.flush_cache()
    assert [row[:2] for row in flushed.rows] == [("a", 4998), ("b", 4999)]


def test_closed_store_gives_its_part_of_the_cache_back(context: Context) -> None:
    store, flushed = listening(CACHED, context)
    store.put_row("a", 1, 9)
    store.close()

    assert context.cache.size_bytes == 0
    assert flushed.rows == []


def test_count_does_not_know_what_only_the_cache_holds(context: Context) -> None:
    store, _ = listening(CACHED, context)
    store.put_row("a", 1, 9)

    assert store.approximate_num_entries() == 0
    store.flush_cache()
    assert store.approximate_num_entries() == 1


class _Message(RawMessage):
    """A message of which one can tell whether it is still in memory."""

    __slots__ = ("__weakref__",)


@pytest.mark.parametrize(("keeps", "alive"), [(False, False), (True, True)])
def test_an_entry_keeps_the_message_only_for_handlers_that_may_ask_for_it(
    context: Context, keeps: bool, alive: bool
) -> None:
    context.current.keeps_messages = keeps
    store, flushed = listening(CACHED, context)
    message = _Message("in", 1, 9, 5, b"raw key", b"raw value", ())
    reference = weakref.ref(message)
    context.current.raw = (message, 5, ())
    store.put_row("key", 1, 5)
    del message
    context.record(6, offset=10)

    assert (reference() is not None) is alive
    store.flush_cache()
    assert reference() is None
    assert flushed.rows == [("key", 1, None, 5, 9)]


def test_the_context_of_an_entry_is_that_of_the_record_that_put_it_last(context: Context) -> None:
    store, _ = listening(CACHED, context)
    found: list[Any] = []
    store.on_flush(lambda *_: found.append(context.current.context), False)
    context.record(5, offset=3, headers=(("a", b"1"),))
    store.put_row("key", 1, 5)
    context.record(8, topic="other", offset=4, headers=(("b", b"2"),))
    store.put_row("key", 2, 8)
    context.current.raw = (None, 9, ())
    store.put_row("of a punctuator", 3, 9)
    store.flush_cache()

    assert found == [RecordContext("other", 1, 4, 8, (("b", b"2"),)), RecordContext(None, -1, -1, 9, ())]


def test_an_entry_that_went_straight_into_a_topic_keeps_no_message(context: Context) -> None:
    context.current.keeps_messages = True
    store = opened(CACHED, context)
    sent: list[Any] = []
    sink = SerializedSink(StringSerde(), JsonSerde(), sent.extend, lambda *record: sent.append(record))
    assert store.on_flush(Flushed(context), False, sink)
    message = _Message("in", 1, 9, 5, b"raw key", b"raw value", ())
    reference = weakref.ref(message)
    context.current.raw = (message, 5, ())
    store.put_row("key", 1, 5)
    del message
    context.record(6, offset=10)
    store.flush_cache()

    assert sent == [(b"key", b"1", 5, ())]
    assert reference() is None


def test_entries_are_evicted_from_outside_in_the_order_of_their_last_use(context: Context) -> None:
    store, flushed = listening(CACHED, context)
    for key in ("a", "b"):
        store.put_row(key, [1], 9)
    assert store.evict_eldest()
    size = context.cache.size_bytes

    assert [key for key, *_ in flushed.rows] == ["a", "b"]
    assert size == 1 + NODE + (8 + 3) + CONTEXT
    assert store.evict_eldest()
    assert not store.evict_eldest()
    assert (context.cache.size_bytes, len(flushed.rows)) == (0, 2)


def test_store_without_cache_has_nothing_to_evict(context: Context) -> None:
    store = opened(Kind("timestamped", "memory", False, True), context)
    store.put_row("a", [1], 9)

    assert not store.evict_eldest()
