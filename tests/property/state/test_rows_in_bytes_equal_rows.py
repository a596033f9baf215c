"""Rows of a store that are read, or were put, in bytes are those that its operators read and put as values."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import Serdes
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.serdes import JsonSerde
from tests.unit.state.support import Context, Kind, opened

KEYS = "abcd"
STEPS = st.lists(
    st.tuples(st.sampled_from((*KEYS, "flush")), st.one_of(st.none(), st.integers(0, 9)), st.integers(0, 40)),
    max_size=30,
)


class Users(JsonSerde[Any]):
    """Nobody knows whether it writes the same bytes for all topics."""


def nowhere(*records: Any) -> None:
    """Takes what is sent."""


@settings(deadline=None)
@given(STEPS, st.sampled_from((None, 150, 1 << 20)))
def test_rows_below_the_cache_and_the_last_one_put(steps: list[Any], cache_bytes: int | None) -> None:
    text, json = Serdes.string(), JsonSerde[Any]()
    with tempfile.TemporaryDirectory() as folder:
        context = Context(Path(folder), cache_bytes=cache_bytes or 0)
        store = opened(Kind("timestamped", "memory", cache_bytes is not None, True), context)
        in_bytes, read = store.serialized_below_cache(text, json), store.reader_below_cache()
        last = store.last_put(SerializedSink(text, json, nowhere, nowhere))

        assert store.serialized_below_cache(text, Users()) is None
        assert store.serialized_below_cache(json, json) is None
        assert store.last_put(SerializedSink(text, Users(), nowhere, nowhere)) is None
        assert (last is None) is (cache_bytes is not None)
        for number, (key, value, timestamp) in enumerate(steps):
            context.record(timestamp, offset=number)
            if key == "flush":
                store.flush_cache()
                continue
            store.put_row(key, value, timestamp)
            if last is not None:
                assert (last.key, last.value) == (key.encode(), json.serialize("t", value))
            for each in KEYS:
                row, found = read(each), in_bytes.read(each.encode())
                assert (None if found is None else (in_bytes.decode_value(found[0]), found[1])) == row
        store.close()
