"""A suppressed table that is restarted anywhere, from compacted changelogs, sends what one without restarts sends.

Times ascend here: the stream time that a suppression goes by is not kept over a restart (as in Kafka Streams), so that
what has expired goes on with the first record that is later.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pykstreams import BufferConfig, Materialized, Serdes, Stores, StreamsBuilder, StreamsConfig, Suppressed
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock
from pykstreams.testing.records import ProducedRecord

IN = TopicPartition("in", 0)
CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "processing.guarantee": "exactly_once_v2",
    }
)


def plan(time_limit_ms: int, buffer: BufferConfig) -> Any:
    builder = StreamsBuilder()
    stored: Materialized[str, str] = Materialized(Stores.in_memory_key_value_store("tab"), caching=False)
    table = builder.table("in", materialized=stored)
    suppressed = table.suppress(Suppressed.until_time_limit(time_limit_ms, buffer, name="calm"))
    suppressed.filter(lambda key, value: value != "x").to_stream().to("out")
    return builder.build().plan(CONFIG).whole


class Application:
    """Input, output and changelogs that outlive the task; what was not committed is lost with it."""

    def __init__(self, part: Any, messages: list[RawMessage]) -> None:
        self._part = part
        self._messages = messages
        self._offset = 0
        self._changelogs: dict[str, dict[bytes, Any]] = {name: {} for name in part.changelog_topics}
        self.out: list[tuple[Any, ...]] = []

    def start(self) -> None:
        self._producer = CapturingProducer()
        collector = RecordCollector(self._producer, config=CONFIG, partition_count=lambda topic: 1)
        self._task = Task(
            TaskId(0, 0),
            self._part,
            (IN,),
            TaskParts(
                config=CONFIG,
                clock=MockClock(0),
                collector=collector,
                cache=RecordCache(0),
                metrics=StreamsMetrics(),
            ),
            InitialState(Path("unused")),
        )
        for place, store in self._task.open_stores().items():
            store.restore([(key, *rest) for key, rest in self._changelogs[place.topic].items()])
            store.end_restore()
        self._task.start({})
        self._task.add(IN, self._messages[self._offset :])

    def process(self, count: int) -> int:
        return self._task.process(count)

    def commit(self) -> None:
        offsets = self._task.prepare_commit()
        for record in self._producer.take():
            self._keep(record)
        self._task.post_commit({})
        if IN in offsets:
            self._offset = offsets[IN][0]

    def crash(self) -> None:
        self._task.close()
        self.start()

    def _keep(self, record: ProducedRecord) -> None:
        if record.topic == "out":
            self.out.append((record.key, record.value, record.timestamp, record.headers))
        elif record.value is None:
            self._changelogs[record.topic].pop(record.key or b"", None)
        else:
            self._changelogs[record.topic][record.key or b""] = (record.value, record.timestamp or 0, record.headers)


CHANGES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from([b"x", b"y", b"z", None]), st.integers(0, 4), st.integers(0, 1)),
    max_size=30,
)
STEPS = st.lists(st.one_of(st.integers(1, 4), st.sampled_from(["commit", "crash"])), max_size=30)


@given(
    changes=CHANGES,
    steps=STEPS,
    time_limit_ms=st.integers(0, 12),
    buffer=st.builds(
        BufferConfig,
        max_records=st.one_of(st.none(), st.integers(0, 3)),
        max_bytes=st.one_of(st.none(), st.integers(0, 200)),
    ),
)
def test_restarts_change_nothing(changes: Any, steps: list[Any], time_limit_ms: int, buffer: BufferConfig) -> None:
    messages, time = [], 0
    for offset, (key, value, step, header) in enumerate(changes):
        time += step
        headers = (("h", bytes([offset])),) * header
        messages.append(RawMessage("in", 0, offset, time, key.encode(), value, headers))
    part = plan(time_limit_ms, buffer)
    without, restarted = Application(part, messages), Application(part, messages)
    without.start()
    without.process(len(messages) + 1)
    without.commit()

    restarted.start()
    for action in steps:
        if action == "commit":
            restarted.commit()
        elif action == "crash":
            restarted.crash()
        else:
            restarted.process(action)
    restarted.process(len(messages) + 1)
    restarted.commit()

    assert restarted.out == without.out
