"""Global stores for a task over history: made of all records of their topics before the task begins.

So every task sees them as they are at the end of the history, as a worker does that starts late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from pykstreams.bulk.backfills.history import HistoryReading
from pykstreams.bulk.backfills.records import BY_TIME, RECORDS
from pykstreams.bulk.backfills.step import BackfillStep
from pykstreams.bulk.engines.sorting import SortedRuns
from pykstreams.bulk.sources.sources import Part
from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.global_stores.global_state import GlobalState
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.state.encoding.layout import unpack_headers
from pykstreams.state.interfaces.record_cache import RecordCache


@contextmanager
def opened_global_stores(
    step: BackfillStep, config: StreamsConfig, folder: Path, clock: Clock, metrics: StreamsMetrics
) -> Iterator[Mapping[str, object]]:
    """Opens the global stores of the application, with what is in their topics; gives them as tasks see them."""
    plans = step.application.plan.global_stores
    if not plans:
        yield {}
        return
    folder.mkdir(parents=True)
    cache = RecordCache(config.statestore_cache_max_bytes)
    state = GlobalState(plans, config=config, clock=clock, metrics=metrics, directory=folder / "state", cache=cache)
    try:
        state.open()
        for reading, parts in step.global_topics:
            _fill(state, reading, parts, folder)
        state.end_restore()
        yield state.views
    finally:
        state.close()


def _fill(state: GlobalState, reading: HistoryReading, parts: tuple[Part, ...], folder: Path) -> None:
    runs = SortedRuns(folder, reading.topic, RECORDS, ("task", *BY_TIME))
    for at, part in enumerate(parts):
        for batch in reading.records(part.batches(), at):
            runs.add(batch)
    offsets = [0] * reading.partitions
    for batch in runs.merged():
        by_partition: dict[int, list[RawMessage]] = {}
        for message in _messages(reading.topic, batch, offsets):
            by_partition.setdefault(message.partition(), []).append(message)
        for messages in by_partition.values():
            state.restore(messages)


def _messages(topic: str, batch: pa.RecordBatch, offsets: list[int]) -> Iterator[RawMessage]:
    names = ("task", "timestamp", "key", "value", "headers")
    for partition, time, key, value, raw in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
        headers = () if raw is None else unpack_headers(raw)
        yield RawMessage(topic, partition, offsets[partition], time, key, value, headers)
        offsets[partition] += 1
