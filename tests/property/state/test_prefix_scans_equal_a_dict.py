"""Scans give the same rows with a prefix extractor as without, through cache, uncommitted writes and files, whatever
the lengths of keys: those of a dict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.engines.transactional import WriteBuffer
from pykstreams.state.interfaces.engine import BytesStore, prefix_end
from pykstreams.state.layers.caching import CachingStore
from tests.unit.state.support import Context

KEYS = st.lists(st.sampled_from([0, 1, 2, 254, 255]), max_size=5).map(bytes)
BOUNDS = st.one_of(st.none(), KEYS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS),
        st.tuples(st.just("put"), KEYS),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("prefix"), KEYS),
        st.tuples(st.just("range"), BOUNDS, BOUNDS, st.booleans()),
        st.tuples(st.just("flush")),
        st.tuples(st.just("commit")),
        st.tuples(st.just("reopen"), st.sampled_from([None, 1, 3])),
        st.tuples(st.just("many"), KEYS),
    ),
    max_size=25,
)


def _as_it_is(value: object, time: int) -> bytes | None:
    assert value is None or isinstance(value, bytes)
    return value


class Model:
    """A dict beside a store of bytes that takes the same steps."""

    def __init__(self, folder: Path, prefix_bytes: int | None, caching: bool) -> None:
        self.context = Context(folder)
        self.context.record(7)
        self.caching = caching
        self.live: dict[bytes, bytes] = {}
        self.writes = 0
        self.open(prefix_bytes)

    def open(self, prefix_bytes: int | None) -> None:
        self.buffer = WriteBuffer(RocksDbEngine("rows", prefix_bytes))
        self.buffer.open(self.context)
        self.top: BytesStore = self.buffer
        if self.caching:
            self.top = CachingStore(self.buffer, self.context.cache, self.context.current, _as_it_is)

    def do_put(self, key: bytes) -> None:
        self.writes += 1
        self.live[key] = b"%d" % self.writes
        self.top.put(key, self.live[key])

    def do_many(self, prefix: bytes) -> None:
        """More rows than a scan reads at once."""
        for number in range(40):
            self.do_put(prefix + bytes((number,)))

    def do_delete(self, key: bytes) -> None:
        self.live.pop(key, None)
        self.top.put(key, None)

    def do_prefix(self, prefix: bytes) -> None:
        self.same(prefix, prefix_end(prefix), False)

    def do_range(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> None:
        self.same(lower, upper, reverse)

    def do_flush(self) -> None:
        if isinstance(self.top, CachingStore):
            self.top.flush()

    def do_commit(self) -> None:
        self.do_flush()
        self.buffer.commit(1)

    def do_reopen(self, prefix_bytes: int | None) -> None:
        """What is in files was written with another extractor, or none."""
        self.do_commit()
        self.close()
        self.open(prefix_bytes)

    def close(self) -> None:
        if isinstance(self.top, CachingStore):
            self.top.close()
        self.buffer.close()

    def same(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> None:
        keys = [key for key in self.live if (lower is None or key >= lower) and (upper is None or key < upper)]

        assert list(self.top.scan(lower, upper, reverse)) == [
            (key, self.live[key]) for key in sorted(keys, reverse=reverse)
        ]


@pytest.fixture(scope="module")
def folders() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("prefix_bytes", [None, 1, 2, 3])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(steps=STEPS)
def test_scans_equal_those_of_a_dict(
    folders: Path, prefix_bytes: int | None, caching: bool, steps: list[tuple[Any, ...]]
) -> None:
    with TemporaryDirectory(dir=folders) as folder:
        model = Model(Path(folder), prefix_bytes, caching)
        for name, *arguments in [*steps, ("commit",), ("prefix", b"\x01"), ("prefix", b"\x01\x02\xff")]:
            getattr(model, f"do_{name}")(*arguments)
        for prefix in {key[:length] for key in model.live for length in range(len(key) + 1)}:
            model.do_prefix(prefix)
        model.close()
