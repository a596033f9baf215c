"""Runs one task of the application over sorted records: the same class that workers run, without brokers.

What it sends goes to files, its stores lie in a folder of this attempt; at the end the rows of the stores are written
to files as well, and all of it is reported. Wall-clock punctuators do not run: history has no time of day.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pykstreams.bulk.backfills.global_stores import opened_global_stores
from pykstreams.bulk.backfills.logged_rows import logged_rows
from pykstreams.bulk.backfills.sent_records import SentRecords
from pykstreams.bulk.backfills.step import BackfillStep, LoggedRows, TaskReport
from pykstreams.bulk.stages.batches import CHUNK, REPORT
from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.settings.keys import INTERNAL_KEYS
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.state.bulk.manifest import TaskFiles, content_hash, store_folder
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.sst import SstFiles
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from pykstreams.state.encoding.layout import unpack_headers
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.layers.engine_store import EngineStore

_COMMIT_EVERY: Final = 50_000
_PATIENCE_S: Final = 60.0
_OF_HISTORY: Final[Mapping[str, object]] = {"max.task.idle.ms": -1, **dict.fromkeys(INTERNAL_KEYS, 0)}
"""No record is waited for, and nothing is held back until some time of the day."""


def run_task(
    step: BackfillStep, partition: int, attempt: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs the task of a partition over its records; yields one row, its report.

    A task that has run before and gets nothing reports nothing: it is as it was.
    """
    rest = iter(batches)
    first = next((batch for batch in rest if batch.num_rows), None)
    if first is None and partition in step.states:
        return
    given = rest if first is None else chain((first,), rest)
    with tempfile.TemporaryDirectory(prefix="pykstreams-backfill-", dir=step.scratch) as folder:
        with _TaskRun(step, partition, attempt, Path(folder)) as run:
            for batch in given:
                run.take(batch)
            run.end()
        report = run.report()
    yield pa.RecordBatch.from_pylist([{"task": partition, "report": report.to_json()}], schema=REPORT)


class _TaskRun:
    """One attempt; a context manager that closes the task."""

    def __init__(self, step: BackfillStep, partition: int, attempt: str, folder: Path) -> None:
        self._step, self._partition = step, partition
        self._stem = f"{step.number}-{step.task(partition)}-{attempt}"
        self._folder = folder
        self._before = step.states.get(partition)
        self._config = config = step.application.config.replace(_OF_HISTORY)
        self._closing = ExitStack()
        clock, metrics = SystemClock(), StreamsMetrics()
        logged = step.logged_stores
        unwanted = set(step.part.changelog_topics).difference(logged.values())
        first = 0 if self._before is None else self._before.next_number
        self._sent = SentRecords(
            Path(step.work) / "sent",
            self._stem,
            str(step.task(partition)),
            first,
            step.partition_count,
            unwanted,
            clock,
            {} if self._before is None else self._before.sent_times,
        )
        self._collector = RecordCollector(
            self._sent,
            config=config,
            partition_count=step.partition_count,
            partition_for_key=partition_for_key,
        )
        self._woken = threading.Event()
        self._places = [
            place if (place := TopicPartition(topic, partition)) in step.layout.inputs[step.task(partition)] else None
            for topic in step.inputs
        ]
        cache = RecordCache(config.statestore_cache_max_bytes)
        self._task = Task(
            step.task(partition),
            step.part,
            [place for place in self._places if place is not None],
            TaskParts(
                config=config.replace({"tracing.enable": False}),
                clock=clock,
                collector=self._collector,
                cache=cache,
                metrics=metrics,
                global_stores=self._closing.enter_context(
                    opened_global_stores(step, config, folder / "global", clock, metrics)
                ),
                wake=self._woken.set,
            ),
            InitialState(folder / str(step.task(partition))),
        )
        self._committed: dict[str, tuple[int, str]] = {} if self._before is None else dict(self._before.committed)
        self._offsets = [self._committed.get(topic, (0, ""))[0] for topic in step.inputs]
        self._observed: dict[str, int] = {}
        self._processed = self._uncommitted = 0

    def __enter__(self) -> _TaskRun:
        try:
            self._open()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def take(self, batch: pa.RecordBatch) -> None:
        """Processes records, which are sorted by time within a call and from one call to the next."""
        task, added = self._task, 0
        for place, messages in self._messages(batch).items():
            task.add(place, messages)
            added += len(messages)
        while task.buffered:
            if task.is_ready():
                task.process(added)
            elif not task.unfinished and not task.room:
                raise StreamsError(
                    f"records of task {task.id} wait to be tried again, as many as Retry(max_waiting=...) allows; a "
                    "backfill tries nothing again: look at why they fail, or allow more",
                    task_id=task.id,
                )
            else:
                self._wait()
        self._processed += added
        self._uncommitted += added
        if self._uncommitted >= _COMMIT_EVERY:
            self._commit()

    def end(self) -> None:
        """Commits what has come, and closes the task."""
        self._commit()
        self._observed = {
            name: store.observed_time for name, store in self._task.stores.items() if isinstance(store, EngineStore)
        }
        self._close()

    def report(self) -> TaskReport:
        """Writes the rows of the stores to files, when the task is closed; gives what there is."""
        step, sent = self._step, self._sent.finish()
        before = {} if self._before is None else self._before.logged
        logged = {}
        for name, topic in step.logged_stores.items():
            old = before.get(name, LoggedRows())
            file = sent.pop(topic, None)
            new = self._sent.count(topic)
            logged[name] = old if file is None else LoggedRows((*old.files, file), old.rows + new)
        stores = {name: self._files_of(name, logged) for name, store in step.stores.items() if store.in_files}
        rows = {topic: self._sent.count(topic) for topic in sent}
        return TaskReport(
            self._partition,
            self._processed,
            stores,
            self._committed,
            logged,
            sent,
            rows,
            self._sent.times,
            self._sent.next_number,
        )

    def _open(self) -> None:
        step, before, part = self._step, self._before, self._step.part
        directory = self._folder / str(step.task(self._partition))
        if before is not None and before.stores:
            stores = [
                StoreToMake(part.stores[name], files, files.changelog_offset, part.changelogs.get(name))
                for name, files in before.stores.items()
            ]
            take_over(directory, step.task(self._partition), Path(step.root), stores, self._config, self._stem)
        restored = self._task.open_stores()
        if before is not None:
            for name, store in self._task.stores.items():
                if isinstance(store, EngineStore) and name in before.stores:
                    store.advance(before.stores[name].observed_time)
            self._restore(restored, before)
        places = {place.topic: place for place in self._places if place is not None}
        self._task.start({places[topic]: found for topic, found in self._committed.items()})

    def _restore(self, restored: Mapping[TopicPartition, Any], before: TaskReport) -> None:
        """Reads stores in memory from what they logged before."""
        step = self._step
        for name, one in before.logged.items():
            if step.stores[name].in_files or not one.files:
                continue
            store = restored[TopicPartition(step.part.changelogs[name], self._partition)]
            rows = logged_rows(step, name, one.files, self._folder)
            while chunk := list(islice(rows, CHUNK)):
                store.restore(chunk)
            store.end_restore()

    def _messages(self, batch: pa.RecordBatch) -> dict[TopicPartition, list[RawMessage]]:
        inputs, offsets, times, keys, values = (
            batch.column(name).to_pylist() for name in ("input", "offset", "timestamp", "key", "value")
        )
        column = batch.column("headers")
        if column.null_count == batch.num_rows:
            headers: list[object] = [()] * batch.num_rows
        else:
            headers = [() if raw is None else unpack_headers(raw) for raw in column.to_pylist()]
        found: dict[TopicPartition, list[RawMessage]] = {}
        next_offsets, places = self._offsets, self._places
        for number, offset, time, key, value, each in zip(inputs, offsets, times, keys, values, headers, strict=True):
            place = places[number]
            if place is None:
                raise StreamsError(f"a record of {self._step.inputs[number]!r} came to task {self._task.id}")
            if offset < 0:
                offset = next_offsets[number]
            if offset >= next_offsets[number]:
                next_offsets[number] = offset + 1
            found.setdefault(place, []).append(RawMessage(place.topic, place.partition, offset, time, key, value, each))
        return found

    def _commit(self) -> None:
        task = self._task
        while not task.settle():
            self._wait()
        self._committed.update((place.topic, found) for place, found in task.prepare_commit().items())
        self._collector.check()
        task.post_commit({})
        self._uncommitted = 0

    def _wait(self) -> None:
        """Waits until something that an operator forwards later has finished."""
        self._woken.clear()
        if self._task.running and not self._woken.wait(_PATIENCE_S):
            raise StreamsError(
                f"{self._task.running} records of task {self._task.id} have been in flight for {_PATIENCE_S:g} s, and "
                "none has finished; give map_values_async a timeout",
                task_id=self._task.id,
            )

    def _close(self) -> None:
        with self._closing:
            if self._task.stores:
                self._task.close()

    def _files_of(self, name: str, logged: Mapping[str, LoggedRows]) -> TaskFiles:
        """Writes what lies in the database of a store."""
        step, config = self._step, self._config
        place, task = step.place(name), step.task(self._partition)
        files = SstFiles(Path(step.root), store_folder(name, task), self._stem, place.builder, config)
        content = count = 0
        with OfflineStore.in_folder(
            place.builder, task, config, self._folder / str(task), topic=place.changelog
        ) as offline:
            rows = offline.engine_rows()
            while chunk := list(islice(rows, CHUNK)):
                files.add(chunk)
                content = content_hash(chunk, content)
                count += len(chunk)
        offset = logged[name].rows if name in logged else 0
        return TaskFiles(tuple(files.finish()), count, content, offset, self._observed.get(name, -1))
