"""A suppression buffer equals a sorted list, and a buffer restored from its changelog equals it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.serdes import Serdes
from pykstreams.state.buffers.suppression_buffer import NEVER, NOT_BUFFERED, SuppressionBuffer, suppression_buffer
from tests.unit.state.support import Context

KEYS = st.sampled_from(["", "a", "b", "aa", "é"])
VALUES = st.one_of(st.none(), st.text("xy", max_size=3))
HEADERS = st.lists(st.tuples(st.text("hé", max_size=2), st.one_of(st.none(), st.binary(max_size=2))), max_size=2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 9), KEYS, VALUES, VALUES, HEADERS),
        st.tuples(st.just("evict"), st.integers(-1, 9)),
        st.tuples(st.just("first")),
        st.tuples(st.just("flush")),
        st.tuples(st.just("restore")),
        st.tuples(st.just("hand over")),
    ),
    max_size=40,
)


class Model:
    """(time, key) and what is kept for it, in a plain dict."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, str | None, str | None, str | None, int, Any]] = {}

    def put(self, time: int, key: str, new: str | None, old: str | None, headers: Any) -> None:
        known = self.rows.get(key)
        prior = old if known is None else known[1]
        self.rows[key] = (time if known is None else known[0], prior, old, new, time, headers)

    def in_order(self) -> list[str]:
        return sorted(self.rows, key=lambda key: (self.rows[key][0], key.encode()))

    def take(self, key: str) -> tuple[Any, ...]:
        _, _, old, new, time, headers = self.rows.pop(key)
        return key, (new, old, True), time, headers

    @property
    def size(self) -> int:
        return sum(
            8
            + len(key.encode())
            + len((prior or "").encode())
            + (0 if old == prior else len((old or "").encode()))
            + len((new or "").encode())
            + 20
            + len("in")
            + sum(len(name) + len(value or b"") for name, value in headers)
            for key, (_, prior, old, new, _, headers) in self.rows.items()
        )


def opened(context: Context) -> SuppressionBuffer:
    buffer = suppression_buffer("sup", Serdes.string(), Serdes.string()).build()
    buffer.init(context)
    return buffer


@given(STEPS)
def test_a_buffer_equals_a_sorted_list(steps: list[tuple[Any, ...]]) -> None:
    context = Context(Path())
    buffer, model = opened(context), Model()
    taken: list[tuple[Any, ...]] = []

    def emit(key: Any, change: Any, raw: Any) -> None:
        assert buffer.prior_value(key) is not NOT_BUFFERED
        taken.append((key, change, raw[1], raw[2]))

    for name, *arguments in steps:
        expected: list[tuple[Any, ...]] = []
        taken.clear()
        if name == "put":
            time, key, new, old, headers = arguments
            context.record(time, headers=tuple(headers))
            assert context.current.raw is not None
            buffer.put(time, key, (new, old, False), context.current.raw)
            model.put(time, key, new, old, tuple(headers))
        elif name == "evict":
            expected = [model.take(key) for key in model.in_order() if model.rows[key][0] <= arguments[0]]
            buffer.evict_until(arguments[0], emit)
        elif name == "first" and model.rows:
            expected = [model.take(model.in_order()[0])]
            buffer.evict_first(emit)
        elif name == "flush":
            buffer.flush_cache()
        elif name == "hand over":
            buffer.flush_cache()
            buffer.commit(None)
            buffer.release()
            context = context.of_another_task()
            buffer.init(context)
        elif name == "restore":
            # at once after each flush: a key that left and came back in between would keep its first place
            buffer.flush_cache()
            last = {row[0]: row for row in context.changelog_rows()}
            buffer = opened(context)
            buffer.restore(list(last.values()))
            buffer.end_restore()

        assert taken == expected
        first = model.in_order()[:1]
        assert buffer.min_time == (model.rows[first[0]][0] if first else NEVER)
        assert (buffer.record_count, buffer.size_bytes) == (len(model.rows), model.size)
        for key in ("", "a", "é"):
            assert buffer.prior_value(key) == (model.rows[key][1] if key in model.rows else NOT_BUFFERED)
