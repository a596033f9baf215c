"""Rows that go straight from a cache into a topic are those that a listener would have had to serialize."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import Serdes
from pykstreams.core.serialized_sink import SerializedRecord, SerializedSink
from pykstreams.core.types import Headers
from pykstreams.serdes import JsonSerde
from pykstreams.serdes.windowed import SessionWindowedSerializer, TimeWindowedSerializer
from pykstreams.state import Stores
from pykstreams.state.layers import caching
from tests.unit.state.support import Context, Kind, opened

Step: TypeAlias = tuple[str, str, Any, int]
"""(what to do, key, value, timestamp)"""

SIZE = 10
HEADERS: Headers = (("h", b"1"), ("n", None))

steps = st.lists(
    st.tuples(
        st.sampled_from(("put", "keep", "flush")),
        st.sampled_from("abcde"),
        st.one_of(st.none(), st.integers(0, 9), st.lists(st.integers(0, 9), max_size=2)),
        st.integers(0, 40),
    ),
    max_size=40,
)


class Output:
    """What arrives in the topic, by either way."""

    def __init__(self, key_serializer: Any) -> None:
        self.sent: list[tuple[bytes, bytes | None, int, Headers]] = []
        self.went_straight = 0
        self._key = key_serializer
        self._value = JsonSerde[Any]()

    @property
    def sink(self) -> SerializedSink:
        return SerializedSink(self._key, self._value, self._take, lambda *record: self._take([record]))

    def listen(self, key: Any, change: tuple[Any, Any, bool], timestamp: int, headers: Headers) -> None:
        value = self._value.serialize("out", change[0], headers)
        self.sent.append((self._key.serialize("out", key, headers), value, timestamp, headers))

    def _take(self, records: Any) -> None:
        found: list[SerializedRecord] = list(records)
        self.went_straight += len(found)
        self.sent += found


def opened_store(kind: str, context: Context) -> tuple[Any, Any]:
    """An open store with a cache, and the serializer of the keys that leave it."""
    text = Serdes.string()
    if kind == "rows":
        return opened(Kind("timestamped", "memory", True, True), context), text.serializer
    builder: Any
    key: Any
    if kind == "windows":
        windows = Stores.in_memory_window_store("orders", 1000, SIZE)
        builder = Stores.timestamped_window_store_builder(windows, text, JsonSerde(), caching=True)
        key = TimeWindowedSerializer(text.serializer)
    else:
        sessions = Stores.in_memory_session_store("orders", 1000)
        builder = Stores.session_store_builder(sessions, text, JsonSerde(), caching=True)
        key = SessionWindowedSerializer(text.serializer)
    store = builder.build()
    store.init(context)
    return store, key


def run(store: Any, context: Context, todo: list[Step], kind: str) -> None:
    for number, (action, key, value, timestamp) in enumerate(todo):
        context.record(timestamp, offset=number, headers=HEADERS if number % 3 else ())
        if action == "flush":
            store.flush_cache()
            continue
        start = timestamp - timestamp % SIZE
        if kind == "sessions":
            store.put_row(key, start, start + timestamp % 3, value)
            continue
        write = store.put_row if action == "put" else store.keep_row
        if kind == "windows":
            write(key, start, value, timestamp)
        else:
            write(key, value, timestamp)
    store.flush_cache()


@settings(deadline=None)
@given(
    todo=steps,
    cache_bytes=st.sampled_from((0, 150, 1 << 20)),
    kind=st.sampled_from(("rows", "windows", "sessions")),
    replayed=st.booleans(),
    measured_puts=st.sampled_from((1, caching.MEASURED_PUTS)),
)
def test_both_ways_give_the_same_records_changelog_and_rows(
    todo: list[Step], cache_bytes: int, kind: str, replayed: bool, measured_puts: int
) -> None:
    found = []
    outputs = []
    for straight in (True, False):
        with tempfile.TemporaryDirectory() as folder, patch.object(caching, "MEASURED_PUTS", measured_puts):
            context = Context(Path(folder), cache_bytes=cache_bytes)
            context.current.replayed = replayed
            store, key_serializer = opened_store(kind, context)
            output = Output(key_serializer)

            assert store.on_flush(output.listen, False, output.sink if straight else None)
            run(store, context, todo, kind)
            found.append((output.sent, context.logged, list(store.engine_rows())))
            outputs.append(output)
            store.close()

    assert found[0] == found[1]
    assert outputs[1].went_straight == 0
    goes_straight = [kind == "sessions" or value is not None for _, value, _, _ in outputs[0].sent]
    assert outputs[0].went_straight == sum(goes_straight)
