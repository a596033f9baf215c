"""Every kind of session store over every engine and combination of layers equals a plain list of intervals, whatever
is done to it; what is restored from its changelog equals what was live.

The retention is long here, so that nothing is forgotten; what is forgotten, and when, is tested by example.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.core.windows import EmitStrategy, Window, Windowed
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import (
    AggregationWithHeaders,
    BuiltInDslStoreSuppliers,
    DslSessionParams,
    DslStoreFormat,
    SessionBytesStoreSupplier,
    Stores,
)
from pykstreams.state.layers import caching
from tests.unit.state.support import NAME, ROOMY, Context

RETENTION = 400_000  # segments of 200 000 ms

KEYS = st.sampled_from(["", "a", "aa", "ab", "b", "a\0", "é"])
TIMES = st.one_of(st.integers(0, 20), st.integers(0, 399_999))
VALUES = st.one_of(st.integers(0, 99), st.lists(st.integers(0, 9), max_size=3))
BOUNDS = st.one_of(st.none(), KEYS)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, TIMES, TIMES, VALUES),
        st.tuples(st.just("put"), KEYS, TIMES, TIMES, VALUES),
        st.tuples(st.just("put_row"), KEYS, TIMES, TIMES, st.one_of(VALUES, st.none())),
        st.tuples(st.just("remove_one"), st.integers(0, 20)),
        st.tuples(st.just("remove"), KEYS, TIMES, TIMES),
        st.tuples(st.just("find"), KEYS, TIMES, TIMES, st.booleans()),
        st.tuples(st.just("sessions"), KEYS, TIMES, TIMES),
        st.tuples(st.just("find_range"), BOUNDS, BOUNDS, TIMES, TIMES, st.booleans()),
        st.tuples(st.just("ended"), TIMES, TIMES),
        st.tuples(st.just("fetch_session"), KEYS, TIMES, TIMES),
        st.tuples(st.just("fetch"), KEYS, st.booleans()),
        st.tuples(st.just("flush")),
        st.tuples(st.just("commit")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("hand_over")),
    ),
    max_size=30,
)

Session: TypeAlias = tuple[str, int, int]
"""Key, start, end."""


@dataclass(frozen=True)
class Kind:
    """A kind of session store over an engine with or without cache and changelog."""

    store: str
    engine: str
    caching: bool
    logging: bool

    def __str__(self) -> str:
        layers = [name for name, on in (("cached", self.caching), ("logged", self.logging)) if on]
        return "-".join([self.store, self.engine, *layers])

    def supplier(self) -> SessionBytesStoreSupplier:
        """What makes its engine."""
        if self.engine == "memory":
            return Stores.in_memory_session_store(NAME, RETENTION)
        if self.engine == "by-end":
            form = DslStoreFormat.HEADERS if self.store == "headers" else DslStoreFormat.PLAIN
            wanted = DslSessionParams(NAME, RETENTION, EmitStrategy.ON_WINDOW_CLOSE, form)
            return BuiltInDslStoreSuppliers.ROCKS_DB.session_store(wanted)
        if self.store == "headers":
            return Stores.persistent_session_store_with_headers(NAME, RETENTION)
        return Stores.persistent_session_store(NAME, RETENTION)

    def opened(self, context: Context) -> Any:
        """Builds and opens such a store."""
        make = Stores.session_store_with_headers_builder if self.store == "headers" else Stores.session_store_builder
        builder: Any = make(self.supplier(), StringSerde(), JsonSerde(), caching=self.caching, logging=self.logging)
        store = builder.build()
        store.init(context)
        return store


KINDS = [
    Kind(*choice)
    for choice in product(("plain", "headers"), ("rocksdb", "by-end", "memory"), (False, True), (False, True))
]


def in_segments(session: Session) -> tuple[Any, ...]:
    key, start, end = session
    return end // (RETENTION // 2), key.encode() + end.to_bytes(8, "big") + start.to_bytes(8, "big")


def in_memory(session: Session) -> tuple[Any, ...]:
    key, start, end = session
    return end, key.encode(), -start


def by_end(session: Session) -> tuple[Any, ...]:
    key, start, end = session
    return end, start, key.encode()


class Model:
    """A dict of intervals beside an open store: it takes the same steps, and compares what both give."""

    def __init__(self, kind: Kind, folder: Path, cache_bytes: int) -> None:
        self.kind = kind
        self.context = Context(folder, cache_bytes=cache_bytes)
        self.live: dict[Session, Any] = {}
        self.offset = 0
        self.store = kind.opened(self.context)

    def run(self, step: tuple[Any, ...]) -> None:
        name, *arguments = step
        self.context.record(7)
        getattr(self, f"do_{name}")(*arguments)

    def public(self, value: Any) -> Any:
        return AggregationWithHeaders(value, (("h", b"1"),)) if self.kind.store == "headers" else value

    def plain(self, value: Any) -> Any:
        return value.aggregation if self.kind.store == "headers" and value is not None else value

    def do_put(self, key: str, one: int, other: int, value: Any) -> None:
        session = key, min(one, other), max(one, other)
        self.store.put(windowed(session), self.public(value))
        self.live[session] = value

    def do_put_row(self, key: str, one: int, other: int, value: Any) -> None:
        session = key, min(one, other), max(one, other)
        self.store.put_row(*session, value)
        if value is None:
            self.live.pop(session, None)
        else:
            self.live[session] = value

    def do_remove_one(self, number: int) -> None:
        if self.live:
            session = list(self.live)[number % len(self.live)]
            self.store.remove(windowed(session))
            del self.live[session]

    def do_remove(self, key: str, one: int, other: int) -> None:
        session = key, min(one, other), max(one, other)
        self.store.remove(windowed(session))
        self.live.pop(session, None)

    def do_find(self, key: str, end: int, start: int, reverse: bool) -> None:
        found = [s for s in self.live if s[0] == key and s[2] >= end and s[1] <= start]
        self.rows_are(self.store.find_sessions(key, end, start, reverse=reverse), found, reverse)

    def do_sessions(self, key: str, end: int, start: int) -> None:
        found = [s for s in self.live if s[0] == key and s[2] >= end and s[1] <= start]

        assert sorted(self.store.sessions(key, end, start)) == sorted((s[1], s[2], self.live[s]) for s in found)

    def do_find_range(self, lower: str | None, upper: str | None, end: int, start: int, reverse: bool) -> None:
        first, last = (None if bound is None else bound.encode() for bound in (lower, upper))
        found = [
            s
            for s in self.live
            if (first is None or s[0].encode() >= first)
            and (last is None or s[0].encode() <= last)
            and s[2] >= end
            and s[1] <= start
        ]
        self.rows_are(self.store.find_sessions_range(lower, upper, end, start, reverse=reverse), found, reverse)

    def do_ended(self, earliest: int, latest: int) -> None:
        found = [s for s in self.live if earliest <= s[2] <= latest]
        order = in_memory if self.kind.engine == "memory" else by_end
        if self.is_merged_by_start():
            found.sort(key=by_end)
            order = by_end
        with self.store.find_sessions_by_end(earliest, latest) as rows:
            got = [(unwindowed(key), self.plain(value)) for key, value in rows]
        if self.is_merged_by_start():
            got.sort(key=lambda row: by_end(row[0]))

        assert got == [(session, self.live[session]) for session in sorted(found, key=order)]
        if not self.is_merged_by_start():
            assert list(self.store.sessions_ended(earliest, latest)) == [
                (windowed(session), value, session[2]) for session, value in got
            ]

    def do_fetch_session(self, key: str, one: int, other: int) -> None:
        for session in [(key, min(one, other), max(one, other)), *list(self.live)[:3]]:
            value = self.live.get(session)

            assert self.plain(self.store.fetch_session(*session)) == value
            assert self.store.get_row(windowed(session)) == (None if value is None else (value, session[2]))

    def do_fetch(self, key: str, reverse: bool) -> None:
        self.rows_are(self.store.fetch(key, reverse=reverse), [s for s in self.live if s[0] == key], reverse)

    def is_merged_by_start(self) -> bool:
        """A cache over an engine in memory sorts sessions of the same key and end the other way round, as in Java."""
        return self.kind.engine == "memory" and self.kind.caching

    def rows_are(self, iterator: Any, found: list[Session], reverse: bool) -> None:
        with iterator as rows:
            got = [(unwindowed(key), self.plain(value)) for key, value in rows]
        order = in_memory if self.kind.engine == "memory" else in_segments
        expected = sorted(found, key=order, reverse=reverse)
        if self.is_merged_by_start():
            assert [session[2] for session, _ in got] == [session[2] for session in expected]
            got.sort(key=lambda row: order(row[0]), reverse=reverse)

        assert got == [(session, self.live[session]) for session in expected]

    def do_flush(self) -> None:
        self.store.flush_cache()

    def do_commit(self) -> None:
        self.offset += 1
        self.store.flush_cache()
        self.store.commit(self.offset)

        assert self.store.committed_offset() == (self.offset if self.store.persistent else None)

    def do_hand_over(self) -> None:
        """To another task, which has a cache of its own."""
        self.do_commit()
        self.store.release()
        self.context = self.context.of_another_task()
        self.store.init(self.context)

    def do_reopen(self) -> None:
        self.do_commit()
        before = list(self.store.raw_rows())
        self.store.close()
        changelog, self.context.logged = self.context.logged, []
        self.store = self.kind.opened(self.context)
        if self.store.persistent:
            assert list(self.store.raw_rows()) == before
        elif self.kind.logging:
            self.store.restore(changelog)
            self.context.logged = changelog
        else:
            self.live.clear()

    def restored(self, folder: Path) -> list[Any]:
        """The rows of a new store that has read the changelog."""
        store = self.kind.opened(Context(folder))
        store.restore(self.context.logged)
        found = list(store.raw_rows())
        store.close()
        return found


def windowed(session: Session) -> Windowed[str]:
    key, start, end = session
    return Windowed(key, Window(start, end))


def unwindowed(key: Windowed[str]) -> Session:
    return key.key, key.window.start, key.window.end


@pytest.fixture(scope="module")
def folders() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    steps=STEPS,
    cache_bytes=st.sampled_from([0, 200, 500, ROOMY]),
    few_entries=st.sampled_from([0, caching.FEW_ENTRIES]),
)
def test_session_store_equals_a_list_of_intervals(
    folders: Path, kind: Kind, steps: list[tuple[Any, ...]], cache_bytes: int, few_entries: int
) -> None:
    with TemporaryDirectory(dir=folders) as folder, patch.object(caching, "FEW_ENTRIES", few_entries):
        model = Model(kind, Path(folder, "live"), cache_bytes)
        for step in steps:
            model.run(step)
        everything = "find_range", None, None, 0, 2**63 - 1
        model.run((*everything, False))
        model.run(("commit",))
        model.run((*everything, True))
        reopened = kind.engine != "memory" and ("reopen",) in steps
        if kind.logging and not reopened:
            live = list(model.store.raw_rows())

            assert model.restored(Path(folder, "restored")) == live
        model.store.close()
