"""A re-ordered table that is killed anywhere hands on what a stable sort gives, from where the last commit had come to.

What outlives a worker: the input, the committed offsets with their metadata, and of what it sent since then everything
or nothing under exactly-once, under at-least-once some of the changelogs and some of the output, each topic by itself.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import Materialized, Serdes, Stores, StreamsBuilder, StreamsConfig
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock

IN = TopicPartition("in", 0)
Row = tuple[int, bytes, bytes | None, Any]
"""Timestamp, key, value and headers, which tell the offset."""


def settings_of(guarantee: str) -> StreamsConfig:
    text = Serdes.string()
    return StreamsConfig(
        {
            "application.id": "app",
            "default.key.serde": text,
            "default.value.serde": text,
            "processing.guarantee": guarantee,
        }
    )


def plan(grace_ms: int, config: StreamsConfig, *, caching: bool) -> Any:
    builder = StreamsBuilder()
    kept = Materialized[Any, Any](Stores.in_memory_key_value_store("tab"), caching=caching)
    builder.table("in", materialized=kept, reorder_grace=grace_ms).to_stream().to("out")
    return builder.build().plan(config).whole


class Application:
    """Input, output, changelogs and committed offsets, which outlive the task and its folder."""

    def __init__(self, part: Any, config: StreamsConfig, messages: list[RawMessage], folder: Path) -> None:
        self._part = part
        self._config = config
        self._messages = messages
        self._folder = folder
        self._committed: dict[TopicPartition, tuple[int, str]] = {}
        self._changelogs: dict[str, list[Any]] = {name: [] for name in part.changelog_topics}
        self.out: list[Row] = []
        self._done = 0
        """How many rows had been handed on when it was committed last."""
        self.starts: list[tuple[int, int]] = []
        """For each task: where its output begins, and how many rows were committed then."""
        self.doubles = False
        """Whether rows were left by a worker that had committed nothing, so that nobody knows that they come again."""
        self._task: Task | None = None
        self._start()

    def process(self, count: int) -> None:
        assert self._task is not None
        self._task.process(count)

    def commit(self) -> None:
        assert self._task is not None
        offsets = self._task.prepare_commit()
        self._keep(self._producer.take())
        self._committed.update(offsets)
        begin, done = self.starts[-1]
        self._done = done + len(self.out) - begin
        self._task.post_commit({TopicPartition(name, 0): len(rows) for name, rows in self._changelogs.items()})

    def crash(self, arrived: dict[str, int], *, keeps_folder: bool) -> None:
        """Kills the worker; of what it sent since the last commit only so many records of each topic have arrived."""
        assert self._task is not None
        left = dict(arrived)
        survivors = []
        for record in self._producer.take():
            kind = "out" if record.topic == "out" else record.topic.removeprefix("app-")
            left[kind] = left.get(kind, 0) - 1
            if left[kind] >= 0:
                survivors.append(record)
        self._keep(survivors)
        self.doubles |= not self._committed and any(self._changelogs.values())
        self._task.close()
        if not keeps_folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._start()

    def close(self) -> None:
        assert self._task is not None
        self._task.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        self._producer = CapturingProducer()
        self.starts.append((len(self.out), self._done))
        self._task = Task(
            TaskId(0, 0),
            self._part,
            (IN,),
            TaskParts(
                config=self._config,
                clock=MockClock(0),
                collector=RecordCollector(self._producer, config=self._config, partition_count=lambda topic: 1),
                cache=RecordCache(1 << 20),
                metrics=StreamsMetrics(),
            ),
            InitialState(self._folder),
        )
        for place, store in self._task.open_stores().items():
            store.restore(self._changelogs[place.topic][store.committed_offset() or 0 :])
            store.end_restore()
        self._task.start(self._committed)
        offset = self._committed[IN][0] if IN in self._committed else 0
        self._task.add(IN, self._messages[offset:])

    def _keep(self, records: Any) -> None:
        for record in records:
            if record.topic == "out":
                self.out.append((record.timestamp, record.key, record.value, tuple(record.headers)))
            else:
                row = record.key, record.value, record.timestamp or 0, record.headers
                self._changelogs[record.topic].append(row)


def sorted_in_time(messages: list[RawMessage], grace_ms: int) -> list[Row]:
    """What goes on of these messages, by a sort."""
    stream_time, kept = -1, []
    for message in messages:
        time = message.timestamp()[1]
        if time >= stream_time - grace_ms:
            kept.append((time, message.key() or b"", message.value(), tuple(message.headers() or ())))
            stream_time = max(stream_time, time)
    return sorted((row for row in kept if row[0] <= stream_time - grace_ms), key=lambda row: row[0])


MESSAGES = st.lists(st.tuples(st.integers(0, 25), st.sampled_from([b"a", b"ab", b"b"]), st.booleans()), max_size=30)
TOPICS = ("out", "KTABLE-SOURCE-0000000001-reorder-Buffer-changelog", "tab-changelog")
CRASHES = st.fixed_dictionaries({topic: st.integers(0, 6) for topic in TOPICS})
STEPS = st.lists(st.one_of(st.integers(1, 5), st.none(), st.tuples(CRASHES, st.booleans())), max_size=14)


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
@settings(max_examples=30, deadline=None)
@given(rows=MESSAGES, steps=STEPS, grace_ms=st.integers(0, 9))
def test_a_table_that_is_killed_anywhere_forwards_a_sorted_input(
    guarantee: str, caching: bool, rows: Any, steps: list[Any], grace_ms: int, tmp_path_factory: Any
) -> None:
    messages = [
        RawMessage("in", 0, offset, time, key, None if empty else b"%d" % offset, (("at", b"%d" % offset),))
        for offset, (time, key, empty) in enumerate(rows)
    ]
    exactly_once = guarantee == "exactly_once_v2"
    config = settings_of(guarantee)
    expected = sorted_in_time(messages, grace_ms)
    app = Application(plan(grace_ms, config, caching=caching), config, messages, tmp_path_factory.mktemp("task"))
    for step in steps:
        if step is None:
            app.commit()
        elif isinstance(step, int):
            app.process(step)
        else:
            arrived, keeps_folder = step
            app.crash({} if exactly_once else arrived, keeps_folder=keeps_folder)
    app.process(1000)
    app.commit()
    app.close()

    ends = [begin for begin, _ in app.starts[1:]]
    for (begin, done), end in zip(app.starts, [*ends, len(app.out)], strict=True):
        run = app.out[begin:end]
        assert all(times == sorted(times) for times in by_key(run).values())
        assert caching or app.doubles or run == expected[done : done + len(run)]
    assert caching or set(expected) <= set(app.out)
    assert caching or not exactly_once or app.out == expected
    assert rows_of(app.out) == rows_of(expected)


def by_key(rows: list[Row]) -> dict[bytes, list[int]]:
    """The timestamps of each key in the order in which they came."""
    found: dict[bytes, list[int]] = {}
    for time, key, _, _ in rows:
        found.setdefault(key, []).append(time)
    return found


def rows_of(changes: list[Row]) -> dict[bytes, Any]:
    """The table that these changes make, with its times."""
    last = {key: (time, value) for time, key, value, _ in changes}
    return {key: row for key, row in last.items() if row[1] is not None}
