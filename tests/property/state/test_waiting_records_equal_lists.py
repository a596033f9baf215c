"""The store of what waits for a partner in a join, beside lists by time, side and key."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.state.buffers.test_waiting import ENGINES, made, waiting
from tests.unit.state.support import Context

RECORDS = st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.booleans())


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from(["add", "add", "discard", "commit", "hand over"]), RECORDS), max_size=30)
)
def test_the_store_equals_lists_by_time_side_and_key(engine: Any, steps: list[tuple[str, Any]]) -> None:
    model: dict[tuple[int, bool, str], list[Any]] = defaultdict(list)
    with TemporaryDirectory() as folder:
        context = Context(Path(folder))
        store = made(context, engine)
        for number, (step, (key, time, left)) in enumerate(steps):
            if step == "add":
                value = str(number) if left else number
                store.add(key, time, left, value)
                model[time, left, key].append(value)
            elif step == "discard":
                store.discard(key, time, left)
                model.pop((time, left, key), None)
            else:
                store.commit(number)
                if step == "hand over":
                    store.release()
                    context = context.of_another_task()
                    store.init(context)

        assert waiting(store) == [(*place, value) for place in sorted(model) for value in model[place]]
        store.close()
