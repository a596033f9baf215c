"""Runs the stages on Spark: ``mapInArrow`` → ``repartitionById`` → ``sortWithinPartitions`` → ``mapInArrow``.

One Spark task folds and writes one share of the keys; ``repartitionById`` makes the number of a row's task the number
of the Spark partition (hashing the number, as ``repartition`` does, would put several tasks together and leave others
empty). Partitions with many more rows than others, and all of them where there are fewer than cores, are divided at
keys that a sample gives, if the store keeps its rows in the order of its keys.

A task may be tried again, or twice at once (speculation): its files carry the id of the attempt, and what it tells is
its last output row, of which Spark takes one per task. This module, ``spark_rows`` and ``data_source`` are the doors to
pyspark.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pykstreams.core.errors import BootstrapError, ConfigError
from pykstreams.spark.application import Application
from pykstreams.spark.job import StoreJob
from pykstreams.spark.shipped_code import shipped_code
from pykstreams.spark.sources import Files, KafkaTopic, Part, SparkRead
from pykstreams.spark.spark_rows import FrameRows, PartRows, SparkRows, beginnings, begun, task_and_attempt
from pykstreams.spark.stages.batches import BY_KEY, BY_TIME, OF_ROWS
from pykstreams.spark.stages.encode import encode
from pykstreams.spark.stages.fold import fold, fold_by_time, restore
from pykstreams.spark.stages.newest import encode_newest, keyed
from pykstreams.spark.stages.write import fold_and_write, write

_SAMPLED_ROWS: Final = 20_000
_MUCH: Final = 2.0  # a partition with so many times the rows of an average share is divided
_ENCODED_SQL: Final = "task int, key binary, time long, `order` long, value binary, headers binary, reason string"
_ROWS_SQL: Final = "key binary, value binary"
_TOLD_SQL: Final = "task int, told string"
_MISSING_MODULE: Final = re.compile(r"No module named '([^']+)'")


class SparkEngine:
    """Builds stores by a Spark session.

    :param session: ``None`` for the active one, or a new one with all cores of this machine.
    :param modules: files and folders with code that executors need beside the application's script.
    """

    def __init__(self, session: Any = None, modules: Sequence[str] = ()) -> None:
        self.session = session if session is not None else open_session()
        self._modules = tuple(modules)

    def build(
        self, job: StoreJob, source: Any, progress: Callable[[str, int, int], None]
    ) -> tuple[StoreJob, list[str]]:
        """Builds one store; gives the job, whose partitions may be divided now, and what its tasks told.

        ``BootstrapError`` if a task failed as often as Spark tries one.
        """
        job = replace(job, application=self.ship(job.application))
        with explained(f"store {job.spec.store!r} was not built"):
            rows = self.rows(source) if not isinstance(source, KafkaTopic) else self._topic(job, source)
            progress("sampled", 0, 1)
            job = self._divided(job, rows)
            progress("sampled", 1, 1)
            progress("built tasks", 0, job.tasks)
            told = [row.told for row in self._told(job, rows).collect()]
        progress("built tasks", len(told), job.tasks)
        return job, told

    def _told(self, job: StoreJob, rows: SparkRows) -> Any:
        """The whole pipeline of one store, lazily."""
        target = job.target
        first = beginnings(self.session, job.tasks, _ENCODED_SQL)
        encoded = first.union(self._encoded(job, rows)).repartitionById(job.tasks, "task")
        if target.by_time:
            by_time = begun(_attempt(fold_by_time, job))
            logged = encoded.sortWithinPartitions(*BY_TIME).mapInArrow(by_time, _ENCODED_SQL)
            engine_rows = logged.sortWithinPartitions(*BY_KEY).mapInArrow(_restoring(job), _ROWS_SQL)
        elif target.in_key_order:
            return encoded.sortWithinPartitions(*BY_KEY).mapInArrow(begun(_attempt(fold_and_write, job)), _TOLD_SQL)
        else:
            engine_rows = encoded.sortWithinPartitions(*BY_KEY).mapInArrow(begun(_attempt(fold, job)), _ROWS_SQL)
        return engine_rows.sortWithinPartitions(*OF_ROWS).mapInArrow(_attempt(write, job), _TOLD_SQL)

    def _encoded(self, job: StoreJob, rows: SparkRows) -> Any:
        if job.target.row_key is None:
            return rows.through(partial(encode, job), _ENCODED_SQL)
        met = rows.through(partial(keyed, job), _ENCODED_SQL).repartitionById(len(job.shares), "task")
        encoding = partial(encode_newest, job, schema=rows.schema)
        return met.sortWithinPartitions(*BY_KEY).mapInArrow(encoding, _ENCODED_SQL)

    def rows(self, source: Any) -> SparkRows:
        """The rows of files, or of whatever Spark reads."""
        return self.of_parts(source.parts()) if isinstance(source, Files) else FrameRows(self.read(source))

    def of_parts(self, parts: Sequence[Part]) -> SparkRows:
        """The rows of parts, which are read inside of the tasks."""
        return PartRows(self.session, parts)

    def read(self, source: Any) -> Any:
        """What Spark reads, as a DataFrame."""
        if not isinstance(source, SparkRead):
            return source
        reader = self.session.read.format(source.format).options(**source.options)
        return reader.load() if source.path is None else reader.load(source.path)

    def _topic(self, job: StoreJob, source: KafkaTopic) -> SparkRows:
        from pykstreams.spark.topic_parts import topic_parts

        return self.of_parts(topic_parts(source, job.application.config, job.source_partitions, job.until))

    def _divided(self, job: StoreJob, rows: SparkRows) -> StoreJob:
        """The job with partitions divided that have many rows, at keys that a sample gives."""
        cores = self.session.sparkContext.defaultParallelism
        if not job.target.in_key_order:
            return job
        count = rows.count()
        if count < _SAMPLED_ROWS:
            return job
        share = min(1.0, _SAMPLED_ROWS / count)
        sampled = rows.sampled(share).through(partial(encode, job), _ENCODED_SQL).select("task", "key", "reason")
        keys: dict[int, list[bytes]] = {}
        for row in sampled.collect():
            if row.reason is None:
                keys.setdefault(row.task, []).append(bytes(row.key))
        return job.divided(bounds_of(keys, max(cores, len(job.shares))))

    def ship(self, application: Application) -> Application:
        """Gives executors on other machines the code of the application, and it the name by which they find it.

        pykstreams itself is installed there.
        """
        from pyspark import SparkFiles

        named, context = application.named, self.session.sparkContext
        if not isinstance(named, str) or context.master.startswith("local"):
            return application
        code = shipped_code(named, self._modules)
        if not Path(SparkFiles.get(code.name)).exists():  # a session takes a file of a name once
            archive = Path(SparkFiles.getRootDirectory()) / "pykstreams" / code.name
            archive.parent.mkdir(exist_ok=True)
            archive.write_bytes(code.content)
            context.addPyFile(str(archive))
        return replace(application, named=code.named)


def open_session() -> Any:
    """The active session, or one with all cores of this machine; ``ConfigError`` says what is missing for one."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ConfigError(
            "engine='spark' needs pyspark, which is not installed: pip install 'pykstreams[spark]' (and Java 17 or "
            "21), or use engine='local', which needs neither"
        ) from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    _need_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return SparkSession.builder.appName("pykstreams bootstrap").config("spark.ui.enabled", "false").getOrCreate()


def bounds_of(keys: dict[int, list[bytes]], shares: int) -> dict[int, tuple[bytes, ...]]:
    """Where to divide partitions, so that there are about so many shares of about equal size.

    :param keys: of each partition, sampled keys.

    >>> bounds_of({0: [b"a", b"b", b"c", b"d"], 1: [b"e"]}, 3)
    {0: (b'c',)}
    """
    total = sum(map(len, keys.values()))
    bounds: dict[int, tuple[bytes, ...]] = {}
    for partition, sampled in keys.items():
        parts = round(len(sampled) * shares / total)
        if parts < _MUCH:
            continue
        ordered = sorted(sampled)
        cuts = sorted({ordered[len(ordered) * at // parts] for at in range(1, parts)})
        bounds[partition] = tuple(cuts)
    return bounds


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Makes a failure of Spark a ``BootstrapError`` that says what was not done, and why."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise BootstrapError(f"{what}, and nothing is published: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What went wrong, out of the traceback of a task."""
    lines = [line for line in str(error).splitlines() if line.startswith("pykstreams.")]
    reason = (lines or [*str(error).splitlines(), type(error).__name__])[0 if not lines else -1]
    missing = _MISSING_MODULE.search(str(error))
    if missing is None:
        return reason
    return (
        f"{reason} (the processes of Spark find no module {missing[1]!r}: name its file or package by modules=[...] "
        "(--module), or install it on all machines)"
    )


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java"):
        return
    raise ConfigError(
        "engine='spark' needs Java 17 or 21, and there is no java on the PATH and no JAVA_HOME: install a JDK (for "
        "instance apt install openjdk-17-jre-headless), or use engine='local', which needs none"
    )


def _restoring(job: StoreJob) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return restore(job, task_and_attempt()[0], batches)

    return run


def _attempt(stage: Callable[[StoreJob, int, str, Iterator[pa.RecordBatch]], Any], job: StoreJob) -> Any:
    """A stage that works for one task, and must not be mixed up with another attempt at it."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, attempt = task_and_attempt()
        found: Iterator[pa.RecordBatch] = stage(job, task, attempt, batches)
        return found

    return run
