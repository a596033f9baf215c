"""A step with retries that is killed anywhere loses no record, and keeps the order of each key; under exactly-once none
leaves twice.

What outlives a worker: the input, the committed offsets with their metadata, and of what it sent since then everything
or nothing under exactly-once, under at-least-once some of the changelog and some of the output, each topic by itself,
but of the changelog nothing before all else: it stays behind (``takes_back``).
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import LogAndContinueProcessingExceptionHandler, Retry, Serdes, StreamsBuilder, StreamsConfig
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
CHANGELOG = "app-KSTREAM-MAPVALUES-0000000001-retries-changelog"
Left = tuple[bytes | None, int, str]
"""Key, offset and topic of a record that has left."""


class Service:
    """Refuses each value a number of times; it knows nothing of crashes."""

    def __init__(self, refusals: list[int]) -> None:
        self._left = dict(enumerate(refusals))

    def __call__(self, value: int) -> int:
        if self._left[value] > 0:
            self._left[value] -= 1
            raise ConnectionError(value)
        return value


class Application:
    """Input, output, changelog and committed offsets, which outlive the task and its folder."""

    def __init__(self, service: Service, messages: list[RawMessage], guarantee: str, room: int, folder: Path) -> None:
        self._config = StreamsConfig(
            {
                "application.id": "app",
                "default.key.serde": Serdes.bytes(),
                "default.value.serde": Serdes.integer(),
                "processing.guarantee": guarantee,
                "processing.exception.handler": LogAndContinueProcessingExceptionHandler,
                "errors.dead.letter.queue.topic.name": "dead",
            }
        )
        builder = StreamsBuilder()
        retry = Retry[Any, Any](max_attempts=3, backoff=100, max_backoff=300, max_waiting=room)
        builder.stream("in").map_values(service, retry=retry).to("out")
        self._part = builder.build().plan(self._config).whole
        self._messages = messages
        self._folder = folder
        self._clock = MockClock(1000)
        self._committed: dict[TopicPartition, tuple[int, str]] = {}
        self._changelog: list[Any] = []
        self.left: list[Left] = []
        self.starts: list[int] = []
        """Where in ``left`` each task has begun."""
        self.doubles = False
        """Whether rows were left by a worker that had committed nothing, so that nobody knows that they come again."""
        self._start()

    def process(self, count: int) -> None:
        self._task.process(count)

    def wait(self, ms: int) -> None:
        self._clock.advance(ms)
        self._task.punctuate(self._clock.now_ms())

    def commit(self) -> None:
        assert self._task.settle()
        offsets = self._task.prepare_commit()
        self._keep(self._producer.take())
        self._committed.update(offsets)
        self._task.post_commit({TopicPartition(CHANGELOG, 0): len(self._changelog)})

    def crash(self, arrived: int, logged: int, *, keeps_folder: bool) -> None:
        """Kills the worker; so many records have arrived, and so many of the changelog where all others have."""
        sent = self._producer.take()
        others, changes = (
            [one for one in sent if one.topic != CHANGELOG],
            [one for one in sent if one.topic == CHANGELOG],
        )
        self._keep([*others[:arrived], *(changes[:logged] if arrived >= len(others) else ())])
        self.doubles |= not self._committed and bool(self._changelog)
        self._task.close()
        if not keeps_folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._start()

    def run_to_the_end(self) -> None:
        buffer = self._task.stores["KSTREAM-MAPVALUES-0000000001-retries"]
        while self._task.buffered or len(buffer):
            self.process(1000)
            self.wait(1000)
        self.commit()
        assert not [*buffer.raw_rows()]
        self._task.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        self._producer = CapturingProducer()
        self.starts.append(len(self.left))
        self._task = Task(
            TaskId(0, 0),
            self._part,
            (IN,),
            TaskParts(
                config=self._config,
                clock=self._clock,
                collector=RecordCollector(self._producer, config=self._config, partition_count=lambda topic: 1),
                cache=RecordCache(1 << 20),
                metrics=StreamsMetrics(),
            ),
            InitialState(self._folder),
        )
        for store in self._task.open_stores().values():
            store.restore(self._changelog[store.committed_offset() or 0 :])
            store.end_restore()
        self._task.start(self._committed)
        offset = self._committed[IN][0] if IN in self._committed else 0
        self._task.add(IN, self._messages[offset:])

    def _keep(self, records: Any) -> None:
        for record in records:
            if record.topic == CHANGELOG:
                self._changelog.append((record.key, record.value, record.timestamp or 0, record.headers))
            else:
                self.left.append((record.key, int.from_bytes(record.value, "big"), record.topic))


RECORDS = st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c", None]), st.integers(0, 4)), max_size=20)
CRASHES = st.tuples(st.integers(0, 8), st.integers(0, 8), st.booleans())
STEPS = st.lists(st.one_of(st.integers(1, 5), st.integers(50, 400), st.none(), CRASHES), max_size=20)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
@settings(max_examples=60, deadline=None)
@given(records=RECORDS, steps=STEPS, room=st.integers(1, 6))
def test_a_step_that_is_killed_anywhere_loses_nothing_and_keeps_the_order_of_keys(
    guarantee: str, records: Any, steps: list[Any], room: int, tmp_path_factory: Any
) -> None:
    exactly_once = guarantee == "exactly_once_v2"
    messages = [
        RawMessage("in", 0, offset, 5, key, offset.to_bytes(4, "big"), ()) for offset, (key, _) in enumerate(records)
    ]
    service = Service([refusals for _, refusals in records])
    app = Application(service, messages, guarantee, room, tmp_path_factory.mktemp("task"))
    for step in steps:
        if step is None:
            app.commit()
        elif isinstance(step, tuple):
            arrived, logged, keeps_folder = step
            app.crash(*((0, 0) if exactly_once else (arrived, logged)), keeps_folder=keeps_folder)
        elif step < 50:
            app.process(step)
        else:
            app.wait(step)
    app.run_to_the_end()

    times = Counter(offset for _, offset, _ in app.left)
    assert set(times) == set(range(len(records)))
    assert not exactly_once or set(times.values()) <= {1}
    assert all(key == records[offset][0] for key, offset, _ in app.left)
    for begin, end in zip(app.starts, [*app.starts[1:], len(app.left)], strict=True):
        for key in (b"a", b"b", b"c"):
            order = [offset for found, offset, _ in app.left[begin:end] if found == key]
            assert app.doubles or order == sorted(set(order))
