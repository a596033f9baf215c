"""Whatever a store has logged: one that took over files of it holds what one holds that was restored from it.

The files are made as a batch job makes them: rows by key instead of in their order, in parts that know nothing of each
other, and divided anew by the keys of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.core.ids import TaskId
from pykstreams.core.windows import EmitStrategy, Window, Windowed
from pykstreams.serdes.combined_key import CombinedKey, CombinedKeySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import LongSerde, StringSerde
from pykstreams.state import (
    BuiltInDslStoreSuppliers,
    DslSessionParams,
    DslStoreFormat,
    DslWindowParams,
    Stores,
    ValueAndTimestamp,
    ValueTimestampHeaders,
)
from pykstreams.state.bulk.manifest import TaskFiles, content_hash, store_folder
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.sst import SstFiles
from pykstreams.state.bulk.take_over import StoreToMake, mark_of, take_over
from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.interfaces.session_store import AggregationWithHeaders
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.state.spec import StoreBuilder
from tests.unit.state.bulk.bulk_support import CONFIG
from tests.unit.state.support import NAME, Context

RETENTION = 130_000
SIZE = 10
HEADERS = (("h", b"1"), ("n", None))
TEXT, JSON = StringSerde(), JsonSerde()
TASK = TaskId(0, 1)

KEYS = st.sampled_from(["", "a", "aa", "b", "a\0", "é", "z"])
TIMES = st.one_of(st.integers(0, 20), st.sampled_from([RETENTION, RETENTION + 1]), st.integers(0, 500_000))
VALUES = st.one_of(st.integers(0, 99), st.none())
PUTS = st.lists(st.tuples(KEYS, TIMES, VALUES), max_size=30)


def key_value(layout: str) -> StoreBuilder[Any]:
    if layout == "plain":
        return Stores.key_value_store_builder(Stores.persistent_key_value_store(NAME), TEXT, JSON)
    if layout == "timestamped":
        supplier = Stores.persistent_timestamped_key_value_store(NAME)
        return Stores.timestamped_key_value_store_builder(supplier, TEXT, JSON)
    with_headers = Stores.persistent_timestamped_key_value_store_with_headers(NAME)
    return Stores.timestamped_key_value_store_with_headers_builder(with_headers, TEXT, JSON)


def over_plain() -> StoreBuilder[Any]:
    return Stores.timestamped_key_value_store_builder(Stores.persistent_key_value_store(NAME), TEXT, JSON)


def combined() -> StoreBuilder[Any]:
    supplier = Stores.persistent_timestamped_key_value_store_with_headers(NAME, prefix_bytes=12)
    keys = CombinedKeySerde(LongSerde(), TEXT)
    return Stores.timestamped_key_value_store_with_headers_builder(supplier, keys, JSON)


def window(duplicates: bool) -> StoreBuilder[Any]:
    supplier = Stores.persistent_timestamped_window_store(NAME, RETENTION, SIZE, duplicates)
    return Stores.timestamped_window_store_builder(supplier, TEXT, JSON)


def window_by_time(indexed: bool) -> StoreBuilder[Any]:
    params = DslWindowParams(
        NAME, RETENTION, SIZE, False, EmitStrategy.ON_WINDOW_CLOSE, indexed, DslStoreFormat.TIMESTAMPED
    )
    supplier = BuiltInDslStoreSuppliers.ROCKS_DB.window_store(params)
    return Stores.timestamped_window_store_builder(supplier, TEXT, JSON)


def session(emits_on_close: bool) -> StoreBuilder[Any]:
    strategy = EmitStrategy.ON_WINDOW_CLOSE if emits_on_close else EmitStrategy.ON_WINDOW_UPDATE
    params = DslSessionParams(NAME, RETENTION, strategy, DslStoreFormat.PLAIN)
    return Stores.session_store_builder(BuiltInDslStoreSuppliers.ROCKS_DB.session_store(params), TEXT, JSON)


def session_with_headers() -> StoreBuilder[Any]:
    return Stores.session_store_with_headers_builder(
        Stores.persistent_session_store_with_headers(NAME, RETENTION), TEXT, JSON
    )


def versioned() -> StoreBuilder[Any]:
    return Stores.versioned_key_value_store_builder(
        Stores.persistent_versioned_key_value_store(NAME, RETENTION, RETENTION // 5), TEXT, JSON
    )


def put_window(store: Any, key: str, time: int, value: Any) -> None:
    store.put(key, None if value is None else ValueAndTimestamp(value, time), time)


def put_session(store: Any, key: str, time: int, value: Any) -> None:
    store.put(Windowed(key, Window(time, time + len(key))), value)


KINDS: dict[str, tuple[Callable[[], StoreBuilder[Any]], Callable[[Any, str, int, Any], None]]] = {
    "plain": (lambda: key_value("plain"), lambda store, key, time, value: store.put(key, value)),
    "timestamped": (
        lambda: key_value("timestamped"),
        lambda store, key, time, value: store.put(key, None if value is None else ValueAndTimestamp(value, time)),
    ),
    "timestamped over plain": (
        over_plain,
        lambda store, key, time, value: store.put(key, None if value is None else ValueAndTimestamp(value, time)),
    ),
    "with headers": (
        lambda: key_value("with headers"),
        lambda store, key, time, value: store.put(
            key, None if value is None else ValueTimestampHeaders(value, time, HEADERS)
        ),
    ),
    "combined keys": (
        combined,
        lambda store, key, time, value: store.put(
            CombinedKey(time % 5, key), None if value is None else ValueTimestampHeaders(value, time, HEADERS)
        ),
    ),
    "window": (lambda: window(False), put_window),
    "window with duplicates": (lambda: window(True), put_window),
    "window by time": (lambda: window_by_time(False), put_window),
    "window by time, indexed": (lambda: window_by_time(True), put_window),
    "session": (lambda: session(False), put_session),
    "session with index": (lambda: session(True), put_session),
    "session with headers": (
        session_with_headers,
        lambda store, key, time, value: put_session(
            store, key, time, None if value is None else AggregationWithHeaders(value, HEADERS)
        ),
    ),
    "versioned": (versioned, lambda store, key, time, value: store.put(key, value, time)),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(puts=PUTS, parts=st.integers(1, 3), splits=st.integers(1, 3))
def test_a_store_that_took_over_files_holds_what_a_restored_one_holds(
    kind: str, puts: list[tuple[str, int, Any]], parts: int, splits: int
) -> None:
    make_builder, put = KINDS[kind]
    if kind == "versioned":  # whose changelog a job writes in order of time
        puts = sorted(puts, key=itemgetter(1))
    builder = make_builder()
    with TemporaryDirectory() as name:
        folder = Path(name)
        logged = log(builder, folder / "live", puts, put)
        restored, taken = folder / "restored", folder / "taken"
        restore(builder, restored, logged)
        files = write(builder, folder / "bootstrap", logged, parts, splits)
        take_over(taken, TASK, folder / "bootstrap", [StoreToMake(builder, files, 77, None)], CONFIG, "mark")

        assert stored(builder, taken) == stored(builder, restored)
        assert read(builder, taken) == read(builder, restored)
        assert mark_of(taken) == "mark"
        assert sorted(path.name for path in taken.iterdir()) == ["rocksdb"]


def log(
    builder: StoreBuilder[Any], directory: Path, puts: list[tuple[str, int, Any]], put: Callable[..., None]
) -> list[ChangelogRow]:
    """What a store writes to its changelog."""
    context = Context(directory)
    store = builder.build()
    store.init(context)
    for key, time, value in puts:
        context.record(time, headers=HEADERS)
        put(store, key, time, value)
    store.close()
    return context.changelog_rows()


def restore(builder: StoreBuilder[Any], directory: Path, rows: list[ChangelogRow]) -> None:
    store = builder.build()
    store.init(Context(directory))
    store.restore(rows)
    store.commit(77)
    store.end_restore()
    store.close()


def write(builder: StoreBuilder[Any], folder: Path, rows: list[ChangelogRow], parts: int, splits: int) -> TaskFiles:
    """Folds parts of the keys, each for itself, and writes all of their rows, divided by the keys of the engine."""
    ordered = sorted(rows, key=itemgetter(0))
    by_key = [list(group) for _, group in groupby(ordered, key=itemgetter(0))]
    found: list[tuple[bytes, bytes]] = []
    times = []
    for part in range(parts):
        with OfflineStore.in_memory(builder, TASK, CONFIG) as store:
            for mine in by_key[part::parts]:
                store.restore(mine)
                found += store.drain()
            times.append(store.observed_time)
    found.sort()
    size = -(-len(found) // splits) or 1
    files = []
    for split in range(splits):
        sst = SstFiles(folder, store_folder(builder.name, TASK), f"0-{split}", builder, CONFIG)
        sst.add(found[split * size : (split + 1) * size])
        files += sst.finish()
    return TaskFiles(tuple(files), len(found), content_hash(found), 77, max(times))


def stored(builder: StoreBuilder[Any], directory: Path) -> tuple[list[tuple[bytes, bytes]], int | None]:
    """All rows of the database, second rows included, and its offset."""
    engine = RocksDbEngine(builder.name, getattr(builder.supplier, "prefix_bytes", None))
    engine.open(Context(directory))
    rows, offset = list(engine.scan(None, None, False)), engine.committed_offset()
    engine.close()
    return rows, offset


def read(builder: StoreBuilder[Any], directory: Path) -> list[Any]:
    with OfflineStore.in_folder(builder, TASK, CONFIG, directory) as store:
        rows: Iterator[Any] = store.rows()
        return list(rows)
