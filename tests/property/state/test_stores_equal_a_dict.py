"""Every kind of store over every engine and combination of layers equals a dict, whatever is done to it; what is
restored from its changelog equals what was live."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.serdes.primitives import StringSerde
from tests.unit.state.support import KINDS, ROOMY, Context, Kind, opened, public_value, rows

KEYS = st.sampled_from(["", "a", "aa", "ab", "b", "ba", "c", "é", "\U0010ffff"])
VALUES = st.one_of(st.integers(0, 99), st.lists(st.integers(0, 9), max_size=3), st.text(max_size=3))
TIMES = st.integers(0, 2**40)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, VALUES, TIMES),
        st.tuples(st.just("put_row"), KEYS, VALUES, TIMES),
        st.tuples(st.just("keep_row"), KEYS, VALUES, TIMES),
        st.tuples(st.just("put_if_absent"), KEYS, VALUES, TIMES),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("put_row_none"), KEYS),
        st.tuples(st.just("get"), KEYS),
        st.tuples(st.just("get_row"), KEYS),
        st.tuples(st.just("take_and_keep"), KEYS, VALUES, TIMES),
        st.tuples(st.just("range"), st.one_of(st.none(), KEYS), st.one_of(st.none(), KEYS), st.booleans()),
        st.tuples(st.just("all"), st.booleans()),
        st.tuples(st.just("prefix"), KEYS),
        st.tuples(st.just("flush")),
        st.tuples(st.just("commit")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("hand_over")),
    ),
    max_size=25,
)


class Model:
    """A dict beside an open store: it takes the same steps, and compares what both give."""

    def __init__(self, kind: Kind, folder: Path, cache_bytes: int) -> None:
        self.kind = kind
        self.context = Context(folder, cache_bytes=cache_bytes)
        self.live: dict[str, tuple[Any, int]] = {}
        self.offset = 0
        self.store = opened(kind, self.context)

    def run(self, step: tuple[Any, ...]) -> None:
        name, *arguments = step
        self.context.record(7)
        getattr(self, f"do_{name}")(*arguments)

    def shown(self, key: str) -> Any:
        row = self.live.get(key)
        if row is None:
            return None
        value = public_value(self.kind, *row)
        return value._replace(headers=()) if self.kind.store == "headers" else value

    def same(self, got: Any, key: str) -> None:
        if self.kind.store == "headers" and got is not None:
            got = got._replace(headers=())

        assert got == self.shown(key)

    def do_put(self, key: str, value: Any, timestamp: int) -> None:
        self.store.put(key, public_value(self.kind, value, timestamp))
        self.live[key] = value, timestamp

    def do_put_row(self, key: str, value: Any, timestamp: int) -> None:
        assert self.store.put_row(key, value, timestamp)
        self.live[key] = value, timestamp

    def do_keep_row(self, key: str, value: Any, timestamp: int) -> None:
        mine = list(value) if isinstance(value, list) else value
        assert self.store.keep_row(key, mine, timestamp)
        self.live[key] = value, timestamp

    def do_put_if_absent(self, key: str, value: Any, timestamp: int) -> None:
        self.same(self.store.put_if_absent(key, public_value(self.kind, value, timestamp)), key)
        self.live.setdefault(key, (value, timestamp))

    def do_delete(self, key: str) -> None:
        self.same(self.store.delete(key), key)
        self.live.pop(key, None)

    def do_put_row_none(self, key: str) -> None:
        self.store.put_row(key, None, 3)
        self.live.pop(key, None)

    def do_get(self, key: str) -> None:
        self.same(self.store.get(key), key)

        assert (key in self.store) == (key in self.live)

    def do_get_row(self, key: str) -> None:
        got = self.store.get_row(key)
        expected = self.live.get(key)
        if self.kind.store == "plain" and expected is not None:
            expected = expected[0], -1

        assert got == expected
        if got is not None and isinstance(got[0], list):
            got[0].append("changed by a reader")

    def do_take_and_keep(self, key: str, value: Any, timestamp: int) -> None:
        taken = self.store.take_row(key)
        if taken is not None and isinstance(taken[0], list):
            assert taken[0] == self.live[key][0]
            taken[0].append(1)
            value = taken[0]
        self.store.keep_row(key, value, timestamp)
        self.live[key] = (list(value) if isinstance(value, list) else value), timestamp

    def do_range(self, lower: str | None, upper: str | None, reverse: bool) -> None:
        first, last = (None if bound is None else bound.encode() for bound in (lower, upper))
        self.rows_are(
            rows(self.store.range(lower, upper, reverse=reverse)),
            lambda raw: (first is None or raw >= first) and (last is None or raw <= last),
            reverse,
        )

    def do_all(self, reverse: bool) -> None:
        self.rows_are(rows(self.store.all(reverse=reverse)), lambda raw: True, reverse)

    def do_prefix(self, prefix: str) -> None:
        start = prefix.encode()
        self.rows_are(
            rows(self.store.prefix_scan(prefix, StringSerde().serializer)), lambda raw: raw.startswith(start), False
        )

    def rows_are(self, got: list[tuple[Any, Any]], within: Any, reverse: bool) -> None:
        keys = sorted((key for key in self.live if within(key.encode())), key=str.encode, reverse=reverse)

        assert [key for key, _ in got] == keys
        for key, value in got:
            self.same(value, key)

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
        changelog, logged = self.context.changelog_rows(), self.context.logged
        self.context.logged = []
        self.store = opened(self.kind, self.context)
        if self.store.persistent:
            assert list(self.store.raw_rows()) == before
            assert self.store.committed_offset() == self.offset
        elif self.kind.logging:
            self.store.restore(changelog)
            self.context.logged = logged
        else:
            self.live.clear()

    def restored(self, folder: Path) -> list[Any]:
        """The rows of a new store that has read the changelog."""
        context = Context(folder)
        store = opened(self.kind, context)
        store.restore(self.context.changelog_rows())
        found = list(store.raw_rows())
        store.close()
        return found


@pytest.fixture(scope="module")
def folders() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(steps=STEPS, cache_bytes=st.sampled_from([0, 150, 400, ROOMY]))
def test_store_equals_a_dict(folders: Path, kind: Kind, steps: list[tuple[Any, ...]], cache_bytes: int) -> None:
    with TemporaryDirectory(dir=folders) as folder:
        model = Model(kind, Path(folder, "live"), cache_bytes)
        for step in steps:
            model.run(step)
        model.run(("all", False))
        model.run(("commit",))
        model.run(("all", True))
        reopened = kind.engine == "rocksdb" and ("reopen",) in steps
        if kind.logging and not reopened:
            live = list(model.store.raw_rows())

            assert model.restored(Path(folder, "restored")) == live
        model.store.close()
