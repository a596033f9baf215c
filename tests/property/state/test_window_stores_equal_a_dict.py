"""Every kind of window store over every engine and combination of layers equals a dict with a retention, whatever is
done to it; so does what is reopened, and what is restored from its changelog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pykstreams.core.windows import EmitStrategy, Windowed
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import (
    BuiltInDslStoreSuppliers,
    DslStoreFormat,
    DslWindowParams,
    Stores,
    ValueAndTimestamp,
    ValueTimestampHeaders,
    WindowBytesStoreSupplier,
)
from pykstreams.state.layers import caching
from tests.unit.state.support import NAME, ROOMY, Context

RETENTION = 130_000
INTERVAL = 65_000  # half of it
SIZE = 10
END = 2**63 - 1

KEYS = st.sampled_from(["", "a", "aa", "ab", "b", "a\0", "a\0\0\0\0", "a" + 10 * "\0", "é"])
TIMES = st.one_of(
    st.integers(0, 20), st.sampled_from([RETENTION - 1, RETENTION, RETENTION + 1]), st.integers(0, 500_000)
)
VALUES = st.one_of(st.integers(0, 99), st.lists(st.integers(0, 9), max_size=3), st.none())
BOUNDS = st.one_of(st.none(), KEYS)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, TIMES, VALUES),
        st.tuples(st.just("put"), KEYS, TIMES, VALUES),
        st.tuples(st.just("put_row"), KEYS, TIMES, VALUES),
        st.tuples(st.just("keep_row"), KEYS, TIMES, VALUES),
        st.tuples(st.just("fetch_one"), KEYS, TIMES),
        st.tuples(st.just("fetch"), KEYS, TIMES, TIMES, st.booleans()),
        st.tuples(st.just("fetch_range"), BOUNDS, BOUNDS, TIMES, TIMES, st.booleans()),
        st.tuples(st.just("fetch_all"), TIMES, TIMES, st.booleans()),
        st.tuples(st.just("everything"), st.booleans()),
        st.tuples(st.just("flush")),
        st.tuples(st.just("commit")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("hand_over")),
    ),
    max_size=30,
)

Place: TypeAlias = tuple[str, int, int]
"""Key, window start, sequence number."""

TIME = 7
"""The timestamp of every record."""


@dataclass(frozen=True)
class Kind:
    """A kind of window store over an engine, with or without cache, changelog, duplicates."""

    store: str
    engine: str
    caching: bool
    logging: bool
    duplicates: bool = False

    def __str__(self) -> str:
        layers = (("cached", self.caching), ("logged", self.logging), ("duplicates", self.duplicates))
        return "-".join([self.store, self.engine, *(name for name, on in layers if on)])

    @property
    def indexed(self) -> bool:
        """Whether rows are kept by time, with an index by key: those with headers are so in any case."""
        return self.engine == "by-time-indexed" or (self.engine == "by-time" and self.store == "headers")

    def supplier(self) -> WindowBytesStoreSupplier:
        """What makes its engine."""
        arguments: Any = NAME, RETENTION, SIZE, self.duplicates
        if self.engine == "memory":
            return Stores.in_memory_window_store(*arguments)
        if self.engine.startswith("by-time"):
            form = DslStoreFormat.HEADERS if self.store == "headers" else DslStoreFormat.TIMESTAMPED
            wanted = DslWindowParams(
                NAME,
                RETENTION,
                SIZE,
                self.duplicates,
                EmitStrategy.ON_WINDOW_CLOSE,
                self.engine == "by-time-indexed",
                form,
            )
            return BuiltInDslStoreSuppliers.ROCKS_DB.window_store(wanted)
        persistent = {
            "plain": Stores.persistent_window_store,
            "timestamped": Stores.persistent_timestamped_window_store,
            "headers": Stores.persistent_timestamped_window_store_with_headers,
        }
        return persistent[self.store](*arguments)

    def opened(self, context: Context) -> Any:
        """Builds and opens such a store."""
        make: Any = {
            "plain": Stores.window_store_builder,
            "timestamped": Stores.timestamped_window_store_builder,
            "headers": Stores.timestamped_window_store_with_headers_builder,
        }[self.store]
        builder = make(self.supplier(), StringSerde(), JsonSerde(), caching=self.caching, logging=self.logging)
        store = builder.build()
        store.init(context)
        return store


KINDS = [
    *(
        Kind(*choice)
        for choice in product(("plain", "timestamped", "headers"), ("rocksdb", "memory"), (False, True), (False, True))
    ),
    *(
        Kind(store, engine, caching, True)
        for store, engine, caching in product(("timestamped", "headers"), ("by-time", "by-time-indexed"), (False, True))
    ),
    *(
        Kind(store, engine, False, logging, True)
        for store, engine, logging in product(("plain", "headers"), ("rocksdb", "memory"), (False, True))
    ),
]


class Forgetful:
    """The model of an engine: a dict, and what time it is."""

    def __init__(self, kind: Kind, rows: dict[Place, Any]) -> None:
        self.exact = kind.engine == "memory"
        self.shows_oldest = kind.engine.startswith("by-time")
        self.rows = rows
        self.now = -1
        self.taken_from = 0

    @property
    def shown_from(self) -> int:
        return self.now - RETENTION + (0 if self.shows_oldest else 1)

    def advance(self, time: int) -> None:
        if time <= self.now:
            return
        self.now = time
        oldest = self.shown_from if self.exact else (time - RETENTION) // INTERVAL * INTERVAL
        self.taken_from = max(oldest, 0)
        for place in [place for place in self.rows if place[1] < self.taken_from]:
            del self.rows[place]

    def put(self, place: Place, value: Any) -> None:
        self.advance(place[1])
        if place[1] < self.taken_from:
            return
        if value is None:
            self.rows.pop(place, None)
        else:
            self.rows[place] = value

    def shown(self) -> dict[Place, Any]:
        return {place: value for place, value in self.rows.items() if place[1] >= self.shown_from}


class Model:
    """The model beside an open store: it takes the same steps, and compares what both give."""

    def __init__(self, kind: Kind, folder: Path, cache_bytes: int) -> None:
        self.kind = kind
        self.folder = folder
        self.context = Context(folder, cache_bytes=cache_bytes)
        self.engine = Forgetful(kind, {})
        self.cached: dict[Place, Any] = {}
        self.dirty: dict[Place, None] = {}
        self.committed: dict[Place, Any] = {}
        self.offset: int | None = None
        self.log: list[tuple[Place, Any]] = []
        self.sequence = self.logged_sequence = 0
        self.store = kind.opened(self.context)

    def run(self, step: tuple[Any, ...]) -> None:
        name, *arguments = step
        self.context.record(TIME)
        getattr(self, f"do_{name}")(*arguments)

    # Writes

    def do_put(self, key: str, start: int, value: Any) -> None:
        self.store.put(key, self.public(value), start)
        self.put(key, start, value)

    def do_put_row(self, key: str, start: int, value: Any) -> None:
        self.store.put_row(key, start, value, TIME)
        self.put(key, start, value)

    def do_keep_row(self, key: str, start: int, value: Any) -> None:
        assert self.plain(self.store.fetch_one(key, start)) == part(self.store.take_row(key, start))
        self.store.keep_row(key, start, value, TIME)
        self.put(key, start, value)

    def put(self, key: str, start: int, value: Any) -> None:
        if self.kind.duplicates:
            self.put_duplicate(key, start, value)
        elif self.kind.caching:
            place = key, start, 0
            self.cached[place] = value
            self.dirty.pop(place, None)
            self.dirty[place] = None
        else:
            self.put_below((key, start, 0), value)

    def put_duplicate(self, key: str, start: int, value: Any) -> None:
        self.logged_sequence += 1
        self.log.append(((key, start, self.logged_sequence), value))
        if value is not None:
            self.sequence += 1
            self.engine.put((key, start, self.sequence), value)
        elif self.engine.exact:
            self.engine.advance(start)

    def put_below(self, place: Place, value: Any) -> None:
        self.engine.put(place, value)
        self.log.append((place, value))

    # Reads

    def do_fetch_one(self, key: str, start: int) -> None:
        last = self.sequence if self.kind.duplicates and not self.engine.exact else 0
        expected = self.content().get((key, start, last))

        assert self.plain(self.store.fetch_one(key, start)) == expected
        assert ((key, start) in self.store) == (expected is not None)
        assert part(self.store.get_row(key, start)) == expected

    def do_fetch(self, key: str, time_from: int, time_to: int, reverse: bool) -> None:
        found = [(place, value) for place, value in self.content().items() if place[0] == key]
        expected = [
            (start, value)
            for (_, start, _), value in sorted(found, key=lambda row: row[0][1:], reverse=reverse)
            if time_from <= start <= time_to
        ]
        with self.store.fetch(key, time_from, time_to, reverse=reverse) as rows:
            assert [(start, self.plain(value)) for start, value in rows] == expected
        assert [row[:2] for row in self.store.rows(key, time_from, time_to, reverse)] == expected

    def do_fetch_range(self, lower: str | None, upper: str | None, first: int, last: int, reverse: bool) -> None:
        with self.store.fetch_range(lower, upper, first, last, reverse=reverse) as rows:
            assert self.of(rows) == self.between(lower, upper, first, last, reverse, ranged=True)

    def do_fetch_all(self, first: int, last: int, reverse: bool) -> None:
        with self.store.fetch_all(first, last, reverse=reverse) as rows:
            assert self.of(rows) == self.between(None, None, first, last, reverse)
        found = [(*unwindowed(key), value) for key, value, _ in self.store.rows_between(first, last)]
        assert found == self.between(None, None, first, last, False)

    def do_everything(self, reverse: bool) -> None:
        with self.store.all(reverse=reverse) as rows:
            assert self.of(rows) == self.between(None, None, 0, END, reverse)

    def content(self) -> dict[Place, Any]:
        """What a reader sees: the cache hides what is below it, and hides nothing that is too old."""
        union = {**self.engine.shown(), **self.cached}
        return {place: value for place, value in union.items() if value is not None}

    def between(
        self, lower: str | None, upper: str | None, first: int, last: int, reverse: bool, *, ranged: bool = False
    ) -> list[tuple[str, int, Any]]:
        least, most = (None if bound is None else bound.encode() for bound in (lower, upper))

        def within(place: Place) -> bool:
            key = place[0].encode()
            above, below = least is None or key >= least, most is None or key <= most
            return above and below and first <= place[1] <= last

        by_segment = self.kind.engine == "rocksdb" or (ranged and self.kind.indexed)
        content = self.content()
        places = sorted(filter(within, content), key=by_segment_and_key if by_segment else by_time, reverse=reverse)
        return [(key, start, content[key, start, sequence]) for key, start, sequence in places]

    # Layers

    def do_flush(self) -> None:
        self.store.flush_cache()
        for place in self.dirty:
            self.put_below(place, self.cached[place])
        self.dirty.clear()
        self.cached = {place: value for place, value in self.cached.items() if value is not None}

    def do_commit(self) -> None:
        self.do_flush()
        self.offset = len(self.context.logged)
        self.store.commit(self.offset)
        self.committed = dict(self.engine.rows)

        assert self.context.logged == (list(map(self.logged, self.log)) if self.kind.logging else [])

    def do_hand_over(self) -> None:
        """To another task, which has a cache of its own."""
        self.do_commit()
        self.store.release()
        self.context = self.context.of_another_task()
        self.store.init(self.context)
        self.cached = {}

    def do_reopen(self) -> None:
        self.store.close()
        self.store = self.kind.opened(self.context)
        exact = self.engine.exact
        self.engine = Forgetful(self.kind, {} if exact else dict(self.committed))
        self.cached, self.dirty = {}, {}
        start = self.store.committed_offset()

        assert start == (None if exact else self.offset)
        self.sequence = self.logged_sequence = 0 if start is None else start + 1
        del self.log[len(self.context.logged) :]
        if self.kind.logging:
            self.store.restore(self.context.logged[start or 0 :])
            self.store.end_restore()
            self.restore(self.log[start or 0 :])

    def restore(self, rows: list[tuple[Place, Any]]) -> None:
        for place, _ in rows:
            self.engine.advance(place[1])
        for place, value in rows:
            key, start, sequence = place
            if self.kind.duplicates:
                self.logged_sequence = max(self.logged_sequence, sequence)
                self.sequence = self.sequence + 1 if self.engine.exact else max(self.sequence, sequence)
                place = key, start, self.sequence if self.engine.exact else sequence
            self.engine.put(place, value)

    # Values

    def public(self, value: Any) -> Any:
        if value is None or self.kind.store == "plain":
            return value
        if self.kind.store == "timestamped":
            return ValueAndTimestamp(value, TIME)
        return ValueTimestampHeaders(value, TIME, ())

    def plain(self, value: Any) -> Any:
        return value if value is None or self.kind.store == "plain" else value.value

    def of(self, rows: Any) -> list[tuple[str, int, Any]]:
        return [(*unwindowed(key), self.plain(value)) for key, value in rows]

    def logged(self, row: tuple[Place, Any]) -> tuple[bytes, bytes | None, int, Any]:
        (key, start, sequence), value = row
        raw = key.encode() + start.to_bytes(8, "big") + sequence.to_bytes(4, "big")
        return raw, None if value is None else JsonSerde().serializer.serialize("t", value), TIME, ()


def part(row: tuple[Any, int] | None) -> Any:
    return None if row is None else row[0]


def unwindowed(key: Windowed[str]) -> tuple[str, int]:
    assert key.window.end == key.window.start + SIZE
    return key.key, key.window.start


def by_segment_and_key(place: Place) -> tuple[int, bytes]:
    key, start, sequence = place
    return start // INTERVAL, key.encode() + start.to_bytes(8, "big") + sequence.to_bytes(4, "big")


def by_time(place: Place) -> tuple[int, bytes]:
    key, start, sequence = place
    return start, key.encode() + sequence.to_bytes(4, "big")


@pytest.fixture(scope="module")
def folders() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(steps=STEPS, few=st.sampled_from([0, 300]))
@example(  # rows that are older than those on disk, put after a commit
    steps=[
        ("put", "a", 129_999, 1),
        ("commit",),
        ("put", "ab", 0, 1),
        ("flush",),
        ("put", "a\0\0\0\0", 14, None),
        ("put", "a\0", 129_999, None),
        ("put", "é", 14, None),
        ("reopen",),
    ],
    few=300,
)
@example(  # a range up to a key of which another one is the beginning, with zero bytes where that one has its time
    steps=[
        ("put", "a", 20, 1),
        ("put", "a\0", 20, 2),
        ("put", "a" + 10 * "\0", 20, 3),
        ("put", "b", 20, 4),
        ("fetch_range", "a", "a" + 10 * "\0", 0, 500_000, False),
        ("fetch_range", None, "a" + 10 * "\0", 0, 20, True),
        ("flush",),
        ("fetch_range", "a", "a" + 10 * "\0", 0, 20, False),
        ("fetch_range", "", "a\0\0\0\0", 0, END, True),
    ],
    few=300,
)
def test_window_store_equals_a_dict_with_a_retention(
    folders: Path, kind: Kind, steps: list[tuple[Any, ...]], few: int
) -> None:
    with TemporaryDirectory(dir=folders) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(caching, "FEW_ENTRIES", few)
        model = Model(kind, Path(folder), ROOMY)
        for step in steps:
            model.run(step)
        model.run(("everything", False))
        model.run(("commit",))
        model.run(("reopen",))
        model.run(("everything", True))
        model.store.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.caching], ids=str)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(steps=STEPS, cache_bytes=st.sampled_from([0, 200, 500]))
def test_window_store_equals_a_dict_while_entries_leave_the_cache(
    folders: Path, kind: Kind, steps: list[tuple[Any, ...]], cache_bytes: int
) -> None:
    """No window is old enough to be forgotten here: until when the cache shows one depends on what else it holds."""
    young = {"put", "put_row", "keep_row", "fetch_one", "fetch", "everything", "flush"}
    with TemporaryDirectory(dir=folders) as folder:
        model = Model(kind, Path(folder), cache_bytes)
        for name, *arguments in steps:
            if name in young:
                model.run(
                    (name, *(each % RETENTION if type(each) is int and each > 99 else each for each in arguments))
                )
        model.run(("everything", False))
        model.run(("flush",))
        model.run(("everything", True))
        model.store.close()
