"""Runs the stages on Spark: ``mapInArrow`` → ``repartitionById`` → ``sortWithinPartitions`` → ``mapInArrow``.

All stores that are folded in one way are built by one job of Spark, so that its fixed cost is theirs together. One task
of it folds and writes one share of the keys of one store; ``repartitionById`` makes the number of a row's task that of
the Spark partition (hashing the number, as ``repartition`` does, would put several tasks together and leave others
empty). Partitions with many more rows than others, and all of them where there are fewer than cores, are divided at
keys that a sample gives, if the store keeps its rows in the order of its keys.

A task may be tried again, or twice at once (speculation): its files carry the id of the attempt, and its report is its
last output row, of which Spark takes one per task. This module, ``spark_rows`` and ``state_rows.data_source`` are the
doors to pyspark.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pykstreams.bulk.application import Application
from pykstreams.bulk.engines.code_archive import code_archive
from pykstreams.bulk.engines.spark_rows import FrameRows, PartRows, SparkRows, beginnings, begun, task_and_attempt
from pykstreams.bulk.sources.sources import Files, KafkaTopic, Part, SparkRead
from pykstreams.bulk.stages.batches import BY_KEY, BY_TIME, OF_ROWS
from pykstreams.bulk.stages.encode import encode
from pykstreams.bulk.stages.fold import fold, fold_by_time, restore
from pykstreams.bulk.stages.newest import encode_newest, keyed
from pykstreams.bulk.stages.store_job import StoreJob
from pykstreams.bulk.stages.together import JobsTogether, numbered
from pykstreams.bulk.stages.write import fold_and_write, write
from pykstreams.bulk.targets.target import FoldOrder
from pykstreams.core.errors import BootstrapError, ConfigError

Stage: TypeAlias = Callable[..., Iterator[pa.RecordBatch]]
WritingStage: TypeAlias = Callable[[StoreJob, int, str, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""(job, number of the task, attempt, batches)"""

_SAMPLED_ROWS: Final = 20_000
_WORTH_A_SAMPLE: Final = 10  # a store is divided that has at least so many times the rows of a sample
_MUCH: Final = 2.0  # a partition with so many times the rows of an average share is divided
_ENCODED_SQL: Final = (
    "task int, key binary, time long, partition_time long, `order` long, value binary, headers binary, reason string"
)
_ROWS_SQL: Final = "key binary, value binary"
_REPORT_SQL: Final = "task int, report string"
_CAUSED_BY: Final = "Caused by: "
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
        self, wanted: Sequence[tuple[StoreJob, Any]], progress: Callable[[str, int, int], None]
    ) -> list[tuple[StoreJob, list[str]]]:
        """Builds stores of one application, which are given with their sources.

        Returns for each the job, whose partitions may be divided now, and the reports of its tasks. ``BootstrapError``
        if a task failed as often as Spark tries one.
        """
        application = self.send_code(wanted[0][0].application)
        stores = ", ".join(repr(job.spec.store) for job, _ in wanted)
        with explained(f"store {stores} was not built" if len(wanted) == 1 else f"stores {stores} were not built"):
            given = [(replace(job, application=application), source) for job, source in wanted]
            rows = [self._topic(*one) if isinstance(one[1], KafkaTopic) else self.rows(one[1]) for one in given]
            progress("sampled", 0, 1)
            jobs = self._divided([job for job, _ in given], rows)
            progress("sampled", 1, 1)
            tasks = sum(job.tasks for job in jobs)
            progress("built tasks", 0, tasks)
            reports: dict[str, list[str]] = {job.spec.store: [] for job in jobs}
            for together, their_rows in _together(jobs, rows):
                for row in self._reports(together, their_rows).collect():
                    reports[together.of_task(row.task)[0].spec.store].append(row.report)
                progress("built tasks", sum(map(len, reports.values())), tasks)
        return [(job, reports[job.spec.store]) for job in jobs]

    def _reports(self, together: JobsTogether, rows: Sequence[SparkRows]) -> Any:
        """The whole pipeline of some stores, lazily."""
        target = together.jobs[0].target
        parts = [self._encoded(*one) for one in zip(together.jobs, together.firsts, rows, strict=True)]
        first = beginnings(self.session, together.tasks, _ENCODED_SQL)
        encoded = _union([first, *parts]).repartitionById(together.tasks, "task")
        if target.order is FoldOrder.BY_TIME:
            by_time = begun(_attempt(fold_by_time, together))
            logged = encoded.sortWithinPartitions(*BY_TIME).mapInArrow(by_time, _ENCODED_SQL)
            engine_rows = logged.sortWithinPartitions(*BY_KEY).mapInArrow(_restoring(together), _ROWS_SQL)
        elif target.order is FoldOrder.AS_STORED:
            reporting = begun(_reporting(fold_and_write, together))
            return encoded.sortWithinPartitions(*BY_KEY).mapInArrow(reporting, _REPORT_SQL)
        else:
            engine_rows = encoded.sortWithinPartitions(*BY_KEY).mapInArrow(begun(_attempt(fold, together)), _ROWS_SQL)
        return engine_rows.sortWithinPartitions(*OF_ROWS).mapInArrow(_reporting(write, together), _REPORT_SQL)

    def _encoded(self, job: StoreJob, first: int, rows: SparkRows) -> Any:
        if job.target.row_key is None:
            return rows.through(_numbering(partial(encode, job), first), _ENCODED_SQL)
        met = rows.through(_noting_causes(partial(keyed, job)), _ENCODED_SQL)
        encoding = partial(encode_newest, job, schema=rows.schema)
        sorted_rows = met.repartitionById(len(job.shares), "task").sortWithinPartitions(*BY_KEY)
        return sorted_rows.mapInArrow(_numbering(encoding, first), _ENCODED_SQL)

    def rows(self, source: Any) -> SparkRows:
        """The rows of files, or of whatever Spark reads."""
        return self.of_parts(source.parts()) if isinstance(source, Files) else FrameRows(self.read(source))

    def of_parts(self, parts: Sequence[Part]) -> SparkRows:
        """The rows of parts, which are read inside of the tasks."""
        return PartRows(self.session, parts)

    def read(self, source: Any) -> Any:
        """Reads a source by Spark, as a DataFrame."""
        if not isinstance(source, SparkRead):
            return source
        reader = self.session.read.format(source.format).options(**source.options)
        return reader.load() if source.path is None else reader.load(source.path)

    def _topic(self, job: StoreJob, source: KafkaTopic) -> SparkRows:
        from pykstreams.bulk.sources.topic_parts import topic_parts

        config, partitions = job.application.config, job.source_partitions
        return self.of_parts(topic_parts(source, config, partitions, job.until, headers=job.carries_headers))

    def _divided(self, jobs: Sequence[StoreJob], rows: Sequence[SparkRows]) -> list[StoreJob]:
        """The jobs with partitions divided that have many rows, at keys that samples give."""
        cores = self.session.sparkContext.defaultParallelism
        counts = {at: rows[at].count() for at, job in enumerate(jobs) if job.target.order is FoldOrder.AS_STORED}
        samples = [
            rows[at]
            .sampled(min(1.0, _SAMPLED_ROWS / count))
            .through(_noting_causes(partial(encode, jobs[at])), _ENCODED_SQL)
            .where("reason is null")
            .selectExpr(f"{at} as job", "task", "key")
            for at, count in counts.items()
            if count >= _WORTH_A_SAMPLE * _SAMPLED_ROWS
        ]
        keys: dict[int, dict[int, list[bytes]]] = {}
        for row in _union(samples).collect() if samples else ():
            keys.setdefault(row.job, {}).setdefault(row.task, []).append(bytes(row.key))
        bounds = {at: bounds_of(found, max(cores, len(jobs[at].shares))) for at, found in keys.items()}
        return [job.divided(bounds.get(at, {})) for at, job in enumerate(jobs)]

    def send_code(self, application: Application) -> Application:
        """Sends the code of the application to executors on other machines, and returns it as they name it.

        pykstreams itself is installed there.
        """
        from pyspark import SparkFiles

        named, context = application.named, self.session.sparkContext
        if not isinstance(named, str) or context.master.startswith("local"):
            return application
        code = code_archive(named, self._modules)
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
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:  # Py4JJavaError: pyspark knows some errors of Spark only
        raise BootstrapError(f"{what}, and nothing is published: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """The cause of a failure, out of the traceback of a task, or of Java."""
    lines = [*str(error).splitlines(), type(error).__name__]
    ours = [line for line in lines if line.startswith("pykstreams.")]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    causes = [line.removeprefix(_CAUSED_BY) for line in lines if line.startswith(_CAUSED_BY)]
    reason = ours[-1] if ours else (thrown or lines)[0]
    if thrown and causes and not ours:
        reason += f" (caused by {causes[-1]})"
    missing = _MISSING_MODULE.search(str(error))
    if missing is None:
        return reason
    return (
        f"{reason} (the processes of Spark find no module {missing[1]!r}: name its file or package by modules=[...] "
        "(--module), or install it on all machines)"
    )


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():  # Spark looks nowhere else then
        raise ConfigError(
            f"engine='spark' needs Java, and JAVA_HOME is {home!r}, where there is no bin/java; set it to a JDK of 17 "
            "or 21, or unset it where java is on the PATH"
        )
    if home or shutil.which("java"):
        return
    raise ConfigError(
        "engine='spark' needs Java 17 or 21, and there is no java on the PATH and no JAVA_HOME: install a JDK (for "
        "instance apt install openjdk-17-jre-headless), or use engine='local', which needs none"
    )


def _together(jobs: Sequence[StoreJob], rows: Sequence[SparkRows]) -> Iterator[tuple[JobsTogether, list[SparkRows]]]:
    """Jobs whose stages are the same, with their rows."""
    ways: dict[FoldOrder, list[int]] = {}
    for at, job in enumerate(jobs):
        ways.setdefault(job.target.order, []).append(at)
    for places in ways.values():
        yield JobsTogether(tuple(jobs[at] for at in places)), [rows[at] for at in places]


def _union(frames: Sequence[Any]) -> Any:
    return reduce(lambda some, more: some.union(more), frames)


def _numbering(stage: Stage, first: int) -> Stage:
    """A stage of one job that tells tasks apart by the numbers of all."""

    def run(*given: Any) -> Iterator[pa.RecordBatch]:
        return numbered(stage(*given), first)

    return _noting_causes(run)


def _restoring(together: JobsTogether) -> Stage:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, _ = task_and_attempt()
        job, first = together.of_task(number)
        return restore(job, number - first, batches)

    return _noting_causes(run)


def _attempt(stage: WritingStage, together: JobsTogether) -> Stage:
    """A stage that works for one task, and must not be mixed up with another attempt at it."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, attempt = task_and_attempt()
        job, first = together.of_task(number)
        return stage(job, number - first, attempt, batches)

    return _noting_causes(run)


def _reporting(stage: WritingStage, together: JobsTogether) -> Stage:
    """The last stage: its report carries the number of the task among all."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, attempt = task_and_attempt()
        job, first = together.of_task(number)
        return numbered(stage(job, number - first, attempt, batches), first)

    return _noting_causes(run)


def _noting_causes(stage: Stage) -> Stage:
    """Spark shows errors of Python without their causes; so they are noted with them."""

    def run(*given: Any) -> Iterator[pa.RecordBatch]:
        try:
            yield from stage(*given)
        except Exception as error:
            cause = error.__cause__
            while cause is not None:
                error.add_note(f"caused by {type(cause).__name__}: {cause}")
                cause = cause.__cause__
            raise

    return run
