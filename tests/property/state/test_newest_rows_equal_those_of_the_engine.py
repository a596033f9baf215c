"""The newest rows of a versioned store are those of its engine, however few of them can be at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.state.engines.memory import MemoryEngine
from pykstreams.state.versions.newest import NewestRows

KEYS = st.sampled_from([b"", b"a", b"b", b"c", b"\0", b"\1"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("get"), KEYS, st.integers(1, 20)),
        st.tuples(st.just("put"), KEYS, st.binary(max_size=200), st.integers(0, 2**63 - 1)),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("reopen")),
    ),
    max_size=60,
)


class OnDisk(MemoryEngine):
    """Says that it is not at hand; counts the reads that come to it."""

    persistent = True

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        find: Callable[[bytes], bytes | None] = self.get

        def counted(key: bytes) -> bytes | None:
            self.reads += 1
            return find(key)

        self.get: Any = counted


def opened(engine: MemoryEngine, at_hand_bytes: int) -> NewestRows:
    rows = NewestRows(engine, at_hand_bytes)
    rows.open()
    return rows


@given(steps=STEPS, at_hand_bytes=st.sampled_from([0, 600, 2000, 1 << 20]))
def test_newest_rows_equal_those_of_the_engine(steps: list[tuple[Any, ...]], at_hand_bytes: int) -> None:
    engine, model = OnDisk(), dict[bytes, tuple[bytes, int]]()
    rows = opened(engine, at_hand_bytes)
    for step in steps:
        match step:
            case "get", key, times:
                assert {rows.get(key) for _ in range(times)} == {model.get(key)}
            case "put", key, value, since:
                rows.get(key)
                rows.put(key, value, since)
                model[key] = value, since
            case "delete", key:
                rows.get(key)
                rows.put(key, None, 0)
                model.pop(key, None)
            case ("reopen",):
                rows.open()
    assert list(rows.rows()) == [(key, *model[key]) for key in sorted(model)]
    assert {key: rows.get(key) for key in model} == model


def test_keys_that_are_used_are_soon_at_hand() -> None:
    engine = OnDisk()
    rows = opened(engine, 1 << 20)
    for number in range(10):
        rows.put(b"%d" % number, b"value", number)
    for _ in range(100):
        for number in range(10):
            rows.get(b"%d" % number)

    assert engine.reads < 200


def test_what_is_at_hand_is_bounded() -> None:
    rows = opened(OnDisk(), 10_000)
    for number in range(100_000):
        rows.get(b"%d" % number)

    assert len(rows._young) + len(rows._old) < 10_000 // 256 + 2
