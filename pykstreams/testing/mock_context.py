"""A processor context that notes what a processor does, for testing a processor alone."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.metrics.built_in.tasks import DROPPED_TOTAL, GROUP
from pykstreams.core.names import changelog_name
from pykstreams.core.processor import (
    CurrentRecord,
    FixedKeyProcessorContext,
    ProcessorContext,
    PunctuationType,
)
from pykstreams.core.record import AnyFixedKeyRecord, AnyRecord, RecordContext, RecordMetadata
from pykstreams.core.shown_values import with_noun
from pykstreams.core.types import (
    CommitCallback,
    Duration,
    Punctuator,
    StateRestoreCallback,
    Timestamp,
    duration_ms,
    timestamp_ms,
)
from pykstreams.core.user_code.suppliers import check_punctuator
from pykstreams.serdes.base import AnySerde
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.store import ChangelogWriter, TaskStore
from pykstreams.state.user_stores import StateStore


@dataclass(frozen=True, slots=True)
class CapturedForward:
    """A record that was forwarded, and the child that was named."""

    record: AnyRecord | AnyFixedKeyRecord
    child_name: str | None = None


class CapturedPunctuator:
    """A schedule that was asked for; call ``punctuator`` to let it fire."""

    def __init__(
        self,
        interval_ms: int,
        punctuation_type: PunctuationType,
        punctuator: Punctuator,
        start_time: int | None,
    ) -> None:
        self.interval_ms = interval_ms
        self.punctuation_type = punctuation_type
        self.punctuator = punctuator
        self.start_time = start_time
        self._cancelled = False

    def __repr__(self) -> str:
        cancelled = ", cancelled" if self._cancelled else ""
        return f"<CapturedPunctuator each {self.interval_ms} ms of {self.punctuation_type.name}{cancelled}>"

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled

    def cancel(self) -> None:
        """Marks it as cancelled."""
        self._cancelled = True


class MockProcessorContext(ProcessorContext[Any, Any], FixedKeyProcessorContext[Any, Any]):
    """Stands in for the runtime: stores are handed in, forwards and schedules are noted.

    >>> from pykstreams.core.processor import Processor
    >>> class Double(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record.replace(value=record.value * 2))
    >>> context = MockProcessorContext()
    >>> processor = Double()
    >>> processor.init(context)
    >>> processor.process(Record("a", 21, 0))
    >>> context.forwarded()[0].record.value
    42

    :param state_dir: a temporary folder if not given; it is not made before somebody asks for it.
    """

    def __init__(
        self,
        config: StreamsConfig | Mapping[str, object] | None = None,
        *,
        task_id: TaskId | None = None,
        state_dir: Path | None = None,
    ) -> None:
        given = config if isinstance(config, StreamsConfig) else StreamsConfig(config)
        self._config = StreamsConfig(
            {
                "application.id": "mock-processor-context",
                "bootstrap.servers": "mock-processor-context:1",
                **given.originals,
            }
        )
        self._task_id = task_id or TaskId(0, 0)
        self._state_dir = state_dir
        self._metrics = StreamsMetrics()
        self._metadata: RecordMetadata | None = None
        self._stores: dict[str, object] = {}
        self._forwarded: list[CapturedForward] = []
        self._punctuators: list[CapturedPunctuator] = []
        self._system_time = 0
        self._stream_time = -1
        self._committed = False

    def __repr__(self) -> str:
        return f"<MockProcessorContext of task {self._task_id} with {with_noun(len(self._forwarded), 'forward')}>"

    @property
    def application_id(self) -> str:
        return self._config.application_id

    @property
    def task_id(self) -> TaskId:
        return self._task_id

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """The metadata that ``set_record_metadata`` was called with; ``None`` before."""
        return self._metadata

    @property
    def key_serde(self) -> AnySerde:
        serde: AnySerde = self._config.default_key_serde
        return serde

    @property
    def value_serde(self) -> AnySerde:
        serde: AnySerde = self._config.default_value_serde
        return serde

    @property
    def state_dir(self) -> Path:
        if self._state_dir is None:
            self._state_dir = Path(tempfile.mkdtemp(prefix="mock-processor-context-"))
            weakref.finalize(self, shutil.rmtree, self._state_dir, ignore_errors=True)
        return self._state_dir

    @property
    def metrics(self) -> StreamsMetrics:
        return self._metrics

    def set_record_metadata(self, topic: str, partition: int, offset: int) -> None:
        """Sets where the record that is processed next comes from."""
        self._metadata = RecordMetadata(topic, partition, offset)

    def set_current_system_time_ms(self, value: int) -> None:
        """Sets wall-clock time."""
        self._system_time = value

    def set_current_stream_time_ms(self, value: int) -> None:
        """Sets stream time."""
        self._stream_time = value

    def add_state_store(self, store: StateStore | TaskStore) -> None:
        """Connects a store, under its name."""
        self._stores[store.name] = store

    def get_state_store(self, name: str) -> Any:
        if name not in self._stores:
            raise StreamsError(f"store {name!r} was not added; call add_state_store first")
        return self._stores[name]

    @property
    def state_store_context(self) -> _MockStoreContext:
        """The context to open a store with: ``store.init(context.state_store_context, store)``. It has no changelog."""
        return _MockStoreContext(self)

    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        *,
        start_time: Timestamp | None = None,
    ) -> CapturedPunctuator:
        """Notes the schedule; nothing fires by itself."""
        step = duration_ms(interval, "interval of a punctuation")
        if step < 1:
            raise ValueError(f"interval of a punctuation is {interval!r}; it must be at least 1 ms")
        check_punctuator(punctuation_type, callback)
        start = None if start_time is None else timestamp_ms(start_time, "start time of a punctuation")
        made = CapturedPunctuator(step, punctuation_type, callback, start)
        self._punctuators.append(made)
        return made

    @property
    def scheduled_punctuators(self) -> list[CapturedPunctuator]:
        """Every schedule that was asked for."""
        return list(self._punctuators)

    def forward(self, record: AnyRecord | AnyFixedKeyRecord, child_name: str | None = None) -> None:
        """Notes the record."""
        self._forwarded.append(CapturedForward(record, child_name))

    def forwarded(self, child_name: str | None = None) -> list[CapturedForward]:
        """The forwarded records; with a name, those that this child would have got."""
        return [
            found
            for found in self._forwarded
            if child_name is None or found.child_name is None or found.child_name == child_name
        ]

    def reset_forwards(self) -> None:
        """Forgets what was forwarded."""
        self._forwarded.clear()

    def commit(self) -> None:
        """Notes that a commit was asked for."""
        self._committed = True

    @property
    def committed(self) -> bool:
        """Whether a commit was asked for."""
        return self._committed

    def reset_commit(self) -> None:
        """Forgets that a commit was asked for."""
        self._committed = False

    @property
    def app_configs(self) -> Mapping[str, object]:
        return self._config

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        return self._config.with_prefix(prefix)

    def current_system_time_ms(self) -> int:
        return self._system_time

    def current_stream_time_ms(self) -> int:
        return self._stream_time


class _MockStoreContext:
    """Opens stores without a cache and without a changelog."""

    def __init__(self, processor: MockProcessorContext) -> None:
        self._processor = processor
        self.task_id = processor.task_id
        self.application_id = processor.application_id
        self.state_dir = processor.state_dir
        self.config = StreamsConfig(processor.app_configs)
        self.metrics = processor.metrics
        self.cache = RecordCache(0)
        self.current = CurrentRecord(lambda raw: _record_context(processor))
        self.current.raw = (None, 0, ())  # some record is current; what it is, is asked for when needed

    @property
    def record_metadata(self) -> RecordMetadata | None:
        return self._processor.record_metadata

    @property
    def key_serde(self) -> AnySerde:
        return self._processor.key_serde

    @property
    def value_serde(self) -> AnySerde:
        return self._processor.value_serde

    @property
    def app_configs(self) -> Mapping[str, object]:
        return self._processor.app_configs

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        return self._processor.app_configs_with_prefix(prefix)

    def register(
        self,
        store: StateStore,
        restore_callback: StateRestoreCallback,
        commit_callback: CommitCallback | None = None,
    ) -> None:
        """Connects the store, as ``add_state_store`` does; nothing is ever restored."""
        self._processor.add_state_store(store)

    def changelog(self, store_name: str) -> ChangelogWriter | None:
        return None

    def count_late(self, store_name: str) -> None:
        self.metrics.counter(DROPPED_TOTAL, GROUP, task_id=str(self.task_id)).add()

    def changelog_topic(self, store_name: str) -> str:
        return changelog_name(self.application_id, store_name)


def _record_context(processor: MockProcessorContext) -> RecordContext:
    topic, partition, offset = processor.record_metadata or (None, -1, -1)
    return RecordContext(topic, partition, offset, processor.current_system_time_ms(), ())
