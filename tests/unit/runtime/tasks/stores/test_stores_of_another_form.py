"""A task whose topology keeps rows in another form than those on disk restores them, and reads none of the old."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    EmitStrategy,
    Grouped,
    Materialized,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from pykstreams.core.errors import DamagedStoreError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.swap.only_stores import Nowhere
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.state.bulk.take_over import mark_of, put_mark
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.session_store import SessionStore
from pykstreams.state.interfaces.window_store import WindowStore
from tests.unit.runtime.cluster_fakes import FakeClock

TASK = TaskId(0, 0)
LOG = TopicPartition("shop-counts-changelog", 0)
TEXT = Serdes.string()
MINUTE = timedelta(minutes=1)
TUMBLING = TimeWindows(MINUTE, grace=MINUTE)
SLIDING = SlidingWindows(MINUTE, grace=MINUTE)
SESSIONS = SessionWindows(MINUTE, grace=MINUTE)
ON_CLOSE = EmitStrategy.ON_WINDOW_CLOSE

START = 600_000
OF_WINDOW = b"a" + START.to_bytes(8) + bytes(4)
OF_SESSION = b"a" + START.to_bytes(8) * 2


def counts(
    windows: Any = None, emit: Any = None, *, logging: bool = True, form: str = "DEFAULT"
) -> Callable[[Path], Task]:
    """A task that counts, in the folder that it is given."""

    def made(folder: Path) -> Task:
        builder = StreamsBuilder()
        orders = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT))
        counted: Any = orders.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT))
        counted = counted if windows is None else counted.windowed_by(windows)
        counted = counted if emit is None else counted.emit_strategy(emit)
        counted.count(materialized=Materialized("counts", logging=logging))
        config = StreamsConfig({"application.id": "shop", "bootstrap.servers": "nowhere", "dsl.store.format": form})
        return Task(
            TASK,
            builder.build().plan(config).subtopologies[0],
            [TopicPartition("orders", 0)],
            TaskParts(
                config=config,
                clock=FakeClock(),
                collector=RecordCollector(Nowhere(), config=config, partition_count=lambda topic: 1),
                cache=RecordCache(0),
                metrics=StreamsMetrics(),
            ),
            InitialState(folder),
        )

    return made


def restored(task: Task, key: bytes) -> None:
    """Restores three counted orders of a key, as each form has them in its changelog, and closes the task."""
    logged = task.open_stores()
    task.stores["counts"].restore([(key, (3).to_bytes(8), START, ())])
    if logged:
        task.post_commit({LOG: 1})
    else:
        task.stores["counts"].commit(None)
    task.close()


CHANGES = {
    "windows on close": (counts(TUMBLING), counts(TUMBLING, ON_CLOSE), OF_WINDOW),
    "windows at once": (counts(TUMBLING, ON_CLOSE), counts(TUMBLING), OF_WINDOW),
    "sliding windows on close": (counts(SLIDING), counts(SLIDING, ON_CLOSE), OF_WINDOW),
    "sliding windows at once": (counts(SLIDING, ON_CLOSE), counts(SLIDING), OF_WINDOW),
    "sessions on close": (counts(SESSIONS), counts(SESSIONS, ON_CLOSE), OF_SESSION),
    "sessions at once": (counts(SESSIONS, ON_CLOSE), counts(SESSIONS), OF_SESSION),
    "headers": (counts(), counts(form="HEADERS"), b"a"),
    "no headers": (counts(form="HEADERS"), counts(), b"a"),
    "windows with headers": (counts(TUMBLING), counts(TUMBLING, form="HEADERS"), OF_WINDOW),
    "sessions with headers": (counts(SESSIONS), counts(SESSIONS, form="HEADERS"), OF_SESSION),
}


def value_of(store: Any) -> object:
    """The only value of a restored store."""
    if isinstance(store, WindowStore):
        ((_, kept),) = store.fetch("a", START, START)
    elif isinstance(store, SessionStore):
        kept = store.fetch_session("a", START, START)
    else:
        kept = store.get("a")
    return getattr(kept, "value", getattr(kept, "aggregation", kept))


@pytest.mark.parametrize(("old", "new", "key"), CHANGES.values(), ids=CHANGES)
def test_store_of_another_form_is_set_aside_and_restored(
    old: Callable[[Path], Task],
    new: Callable[[Path], Task],
    key: bytes,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    restored(old(tmp_path), key)
    task = new(tmp_path)
    with caplog.at_level(logging.WARNING):
        task.open_stores()
    store = task.stores["counts"]
    begins_at = store.committed_offset()
    store.restore([(key, (3).to_bytes(8), START, ())])
    found = value_of(store)
    task.close()

    assert (begins_at, found) == (None, 3)
    assert [path.name.partition("-")[0] for path in tmp_path.iterdir() if path.name != "rocksdb"] == ["counts.damaged"]
    (message,) = caplog.messages
    assert "store 'counts' of task 0_0" in message
    assert "It was set aside in" in message


def test_store_of_another_form_without_a_changelog_is_left_as_it_is(tmp_path: Path) -> None:
    restored(counts(logging=False)(tmp_path), b"a")
    task = counts(logging=False, form="HEADERS")(tmp_path)

    with pytest.raises(DamagedStoreError, match="as 'timestamped', and are looked for as 'with headers'"):
        task.open_stores()
    assert [path.name for path in (tmp_path / "rocksdb").iterdir()] == ["counts"]


def test_store_of_another_form_that_is_based_on_a_bootstrap_is_left_to_be_made_of_it_anew(tmp_path: Path) -> None:
    restored(counts()(tmp_path), b"a")
    put_mark(tmp_path, "a bootstrap")

    with pytest.raises(DamagedStoreError, match="its rows lie there as"):
        counts(form="HEADERS")(tmp_path).open_stores()
    assert mark_of(tmp_path) == "a bootstrap"
