"""A reader of a running task sees a dict as it was between two batches, whatever the task does meanwhile.

One test is deterministic: batches, commits, evictions and single steps of iterators in any order. The other has a
thread that writes and threads that read: whatever the scheduler does, a reader must see the work of whole batches.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import KStream, Materialized, QueryableStoreTypes, Stores, StreamsBuilder, TimeWindows, Window, Windowed
from pykstreams.runtime.queries import local_store
from tests.unit.runtime.queries.queried import TOPIC, Application

KEYS = [f"key-{number:03}" for number in range(200)]
PATIENCE_S = 60.0
SUPPLIERS = {
    "rocksdb": Stores.persistent_timestamped_key_value_store,
    "memory": Stores.in_memory_key_value_store,
}

batches = st.lists(st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.integers(0, 9)), st.just(0)), max_size=60)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), batches),
        st.tuples(st.sampled_from(["commit", "open", "next"]), st.integers(0, 300)),
    ),
    max_size=25,
)


def tables(engine: str, caching: bool) -> StreamsBuilder:
    builder = StreamsBuilder()
    supplier = SUPPLIERS[engine]("values")
    builder.table(TOPIC, materialized=Materialized(supplier, caching=caching))
    return builder


@settings(deadline=None, max_examples=60)
@given(steps=steps, engine=st.sampled_from(["rocksdb", "memory"]), cache_bytes=st.sampled_from([0, 3000, 1 << 20]))
def test_iterator_shows_the_dict_of_the_moment_it_was_made(
    steps: list[tuple[str, Any]], engine: str, cache_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        app = Application(tables(engine, cache_bytes > 0), Path(folder), cache_bytes=cache_bytes).start()
        values = app.store("values", QueryableStoreTypes.KEY_VALUE_STORE)
        model: dict[str, str] = {}
        open_iterators: list[tuple[Any, Iterator[tuple[str, str]]]] = []
        for step, argument in steps:
            match step:
                case "batch":
                    rows = [(key, None if value is None else str(value), time) for key, value, time in argument]
                    app.feed(*rows)
                    for key, value, _ in rows:
                        model.pop(key, None)
                        if value is not None:
                            model[key] = value
                    for key in KEYS[::20]:
                        assert values.get(key) == model.get(key)
                case "commit":
                    app.commit()
                case "open":
                    open_iterators.append((values.all(), iter(sorted(model.items()))))
                case _:
                    for found, expected in open_iterators:
                        for _ in range(argument):
                            assert next(found, None) == next(expected, None)
        for found, expected in open_iterators:
            assert list(found) == list(expected)
            found.close()
        app.close()


@pytest.mark.parametrize("caching", [True, False], ids=["cached", "uncached"])
@pytest.mark.parametrize("engine", ["rocksdb", "memory"])
def test_readers_in_threads_see_whole_batches_only(engine: str, caching: bool, tmp_path: Path) -> None:
    """Each batch gives every key the same new value: rows of two batches side by side would be a torn read."""
    app = Application(tables(engine, caching), tmp_path, cache_bytes=8000).start()
    values = app.store("values", QueryableStoreTypes.KEY_VALUE_STORE)
    seen: list[int] = []
    stop = threading.Event()
    errors: list[BaseException] = []

    def read() -> None:
        last = -1
        try:
            while not stop.is_set():
                with values.all() as rows:
                    found = list(rows)
                assert [key for key, _ in found] in ([], KEYS)
                versions = {int(value) for _, value in found}
                assert len(versions) <= 1, versions
                newest = max(versions, default=-1)
                assert newest >= last
                one = values.get(KEYS[newest % len(KEYS)])
                assert one is None or int(one) >= newest
                last = newest
                seen.append(last)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for version in range(60):
        app.feed_whole(*((key, str(version), version) for key in KEYS))
        if version % 7 == 0:
            app.commit()
    while not errors and max(seen, default=-1) < 59:
        app.commit()
    stop.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    app.close()

    assert errors == []
    assert max(seen) == 59


def test_windows_that_are_there_all_the_time_are_shown_once(tmp_path: Path) -> None:
    """Ranges of windows are read segment by segment while others come, are flushed and evicted: none is lost."""
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream(TOPIC)
    stream.group_by_key().windowed_by(TimeWindows(10, grace=10**6)).count(materialized=Materialized("counts"))
    app = Application(builder, tmp_path, cache_bytes=20_000).start()
    counts = app.store("counts", QueryableStoreTypes.WINDOW_STORE)
    steady = [(key, start) for key in KEYS[:40] for start in range(0, 200_000, 20_000)]
    app.feed(*((key, "v", start) for key, start in steady))
    app.commit()
    found = []
    with counts.all() as rows:
        for number, (windowed, _) in enumerate(rows):
            found.append(windowed)
            if number % local_store.FIRST_ROWS == 5:
                app.feed(*((f"other-{number}-{more}", "v", 1000 * more) for more in range(100)))
                app.commit()
    expected = {Windowed(key, Window(start, start + 10)) for key, start in steady}

    app.close()

    assert expected <= set(found)
    assert len(found) == len(set(found))
