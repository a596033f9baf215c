"""An outer join that is restarted anywhere, from its changelogs, gives what one without restarts gives.

When a result without a partner comes may differ, since who looks for closed windows goes by what it has seen since its
start.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import (
    BuiltInDslStoreSuppliers,
    JoinWindows,
    KStream,
    Serdes,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.settings.keys import EMIT_INTERVAL_OF_JOINS
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock
from pykstreams.testing.records import ProducedRecord

INPUTS = TopicPartition("a", 0), TopicPartition("b", 0)
CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "processing.guarantee": "exactly_once_v2",
        EMIT_INTERVAL_OF_JOINS: 0,
    }
)


def plan() -> Any:
    builder = StreamsBuilder()
    left: KStream[str, str] = builder.stream("a")
    right: KStream[str, str] = builder.stream("b")
    options = StreamJoined[Any, Any, Any](store_name="pairs", dsl_store_suppliers=BuiltInDslStoreSuppliers.IN_MEMORY)
    windows = JoinWindows(6, grace=3)
    left.outer_join(right, lambda a, b: f"{a}+{b}", windows=windows, stream_joined=options).to("out")
    return builder.build().plan(CONFIG).whole


class Application:
    """Inputs, output and changelogs that outlive the task; what was not committed is lost with it."""

    def __init__(self, part: Any, messages: dict[TopicPartition, list[RawMessage]]) -> None:
        self._part = part
        self._messages = messages
        self._offsets = dict.fromkeys(messages, 0)
        self._changelogs: dict[str, list[Any]] = {name: [] for name in part.changelog_topics}
        self.out: Counter[tuple[Any, ...]] = Counter()

    def start(self) -> None:
        self._producer = CapturingProducer()
        collector = RecordCollector(self._producer, config=CONFIG, partition_count=lambda topic: 1)
        self._task = Task(
            TaskId(0, 0),
            self._part,
            INPUTS,
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
            store.restore(self._changelogs[place.topic])
            store.end_restore()
        self._task.start({})
        for partition, messages in self._messages.items():
            self._task.add(partition, messages[self._offsets[partition] :])

    def process(self, count: int) -> None:
        self._task.process(count)

    def commit(self) -> None:
        offsets = self._task.prepare_commit()
        for record in self._producer.take():
            self._keep(record)
        self._task.post_commit({})
        self._offsets.update((partition, offset) for partition, (offset, _) in offsets.items())

    def crash(self) -> None:
        self._task.close()
        self.start()

    def _keep(self, record: ProducedRecord) -> None:
        if record.topic == "out":
            self.out[record.key, record.value, record.timestamp] += 1
        else:
            self._changelogs[record.topic].append((record.key, record.value, record.timestamp, record.headers))


RECORDS = st.lists(st.tuples(st.sampled_from(INPUTS), st.sampled_from("kl"), st.integers(0, 5)), max_size=25)
STEPS = st.lists(st.one_of(st.integers(1, 4), st.sampled_from(["commit", "crash"])), max_size=25)


@settings(max_examples=40, deadline=None)
@given(records=RECORDS, steps=STEPS)
def test_restarts_lose_and_double_no_result(records: Any, steps: list[Any]) -> None:
    messages: dict[TopicPartition, list[RawMessage]] = {place: [] for place in INPUTS}
    time = 0
    for number, (place, key, step) in enumerate([*records, *((end, "end", 90) for end in INPUTS)]):
        time += step
        queue = messages[place]
        queue.append(RawMessage(place.topic, 0, len(queue), time, key.encode(), str(number).encode(), ()))
    part = plan()
    without, restarted = Application(part, messages), Application(part, messages)
    without.start()
    without.process(1000)
    without.commit()

    restarted.start()
    for action in steps:
        if action == "commit":
            restarted.commit()
        elif action == "crash":
            restarted.crash()
        else:
            restarted.process(action)
    restarted.process(1000)
    restarted.commit()

    assert restarted.out == without.out
