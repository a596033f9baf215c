"""``backfill``: the unchanged topology over the history of its topics; gives all of its stores, and its output records.

Nobody has to say a second time what the topology says already. Sub-topologies run one after the other, each task over
its records in the order of time, through the operators that workers run; what they send to each other goes through
files in place of repartition topics. The stores become a bootstrap (``pykstreams run ... --bootstrap``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Literal, TypeAlias

from pykstreams.bulk.application import Application, StorePlace
from pykstreams.bulk.backfills.engines import Call, LocalSteps, SparkSteps, Steps
from pykstreams.bulk.backfills.history import TopicHistory, TopicRecords, as_history
from pykstreams.bulk.backfills.job import BackfillJob, History, external_topics, internal_topics, own_changelogs
from pykstreams.bulk.backfills.logged_rows import write_changelog
from pykstreams.bulk.backfills.outputs import move_records, write_records
from pykstreams.bulk.backfills.step import TaskReport, needs_changelog
from pykstreams.bulk.bootstrap import EngineName, check_engine
from pykstreams.bulk.brokers.cluster import Cluster, SourceOffsets, noted_offsets
from pykstreams.bulk.engines.local import Progress
from pykstreams.bulk.progress import shown_progress
from pykstreams.bulk.sources.sources import KafkaTopic, as_source
from pykstreams.bulk.sources.topic_parts import TopicPart, topic_parts
from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.runtime.tasks.offset_metadata import decode
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.bulk.description import described
from pykstreams.state.bulk.folder import is_url
from pykstreams.state.bulk.job_lock import check_unpublished, held_by_job, work_folder
from pykstreams.state.bulk.manifest import (
    Changelog,
    Manifest,
    StoreManifest,
    TaskFiles,
    new_id,
    publish,
)
from pykstreams.topology.topology import Topology

log = logging.getLogger(__name__)

Outputs: TypeAlias = Literal["files", "topics"]
"""Where output records go: to files of the bootstrap's folder, or to their topics."""

_WITHOUT_CACHES: Mapping[str, object] = {"statestore.cache.max.bytes": 0}
"""A cache would hold rows back until a commit, and history would be forwarded in another order than that of time."""


@dataclass(frozen=True)
class BackfillReport:
    """The outcome of a backfill.

    :param manifest: what was published.
    :param records: by topic: how many records were sent to it; those of the application's own topics are not there.
    :param files: by topic: the Parquet files with these records; none where they were written to topics.
    """

    manifest: Manifest
    records: Mapping[str, int]
    files: Mapping[str, tuple[str, ...]]


def backfill(
    app: str | Topology,
    sources: Mapping[str, object],
    *,
    out: str | PurePath,
    engine: EngineName = "spark",
    changelog: Changelog = "write",
    outputs: Outputs = "files",
    source_offsets: SourceOffsets = "now",
    config: StreamsConfig | Mapping[str, object] | None = None,
    partitions: int | Mapping[str, int] | None = None,
    spark: object = None,
    modules: Sequence[str] = (),
    processes: int | None = None,
    progress: bool = False,
) -> BackfillReport:
    """Runs a topology over the history of its topics, and publishes its stores in a folder.

    :param app: the application as ``module:attribute`` or a script; a ``Topology`` does where no other process is used.
    :param sources: by topic, its history: a path to files with the columns ``key``, ``value`` and ``timestamp``, a
        ``TopicHistory`` that says which columns are what, another source of ``pykstreams.spark``, or a DataFrame.
    :param out: a new folder, which every process of the job can write to.
    :param engine: ``"spark"``, or ``"local"`` for processes of this machine without Spark.
    :param changelog: ``"write"`` also writes the changelog topics, so that any worker can restore them;
        ``"base-only"`` does not, and the folder is needed for as long as the stores live.
    :param outputs: whether records for other topics go to ``records/<topic>/`` in the folder, or into the topics.
    :param source_offsets: where the application goes on: ``"now"`` at the ends that the input topics had before
        anything was read, a mapping topic -> partition -> next offset; ``None`` leaves it to the workers. A topic that
        is its own source goes on where it was read to.
    :param config: settings of the application, ``bootstrap.servers`` for instance; those of its script apply else. The
        job runs without record caches, whatever they say of them.
    :param partitions: the partition counts of the topics, as one number or by topic; left out, the cluster is asked.
    :param spark: the session to use; left out, the current one, or a local one with all cores.
    :param modules: for Spark: files and folders of the application's code that executors need (the script itself is).
    :param processes: for the local engine; left out, as many as there are cores.
    :param progress: whether to show how far it is.
    """
    settings = dict(config.originals if isinstance(config, StreamsConfig) else config or {})
    application = Application(app, {**settings, **_WITHOUT_CACHES})
    root = _root(out)
    said = {topic: as_history(given) for topic, given in sources.items()}
    check_engine(engine)
    _check(application, said, root, changelog, outputs)
    asks = changelog == "write" or outputs == "topics" or source_offsets == "now" or partitions is None
    cluster = Cluster(application) if asks else None
    layout, counts = _layout(application, said, cluster, partitions)
    if cluster is not None and changelog == "write":
        cluster.check_idle()
        layout = cluster.prepared(layout)
    _check_topics(application, layout, said)
    logged = own_changelogs(application) if changelog == "write" else []
    if cluster is not None:
        cluster.check_empty(logged, layout)
    offsets = noted_offsets(source_offsets, cluster, layout)
    histories = {topic: _history(topic, given, application, offsets) for topic, given in said.items()}
    started_ms = SystemClock().now_ms()

    def show(name: str) -> AbstractContextManager[Progress]:
        return shown_progress(name, progress)

    internal = internal_topics(application)
    moved: dict[str, tuple[str, ...]] = {}
    with held_by_job(root), work_folder(root) as work:
        work.chmod(0o755)
        with _steps(engine, application, spark, modules, processes) as steps:
            job = BackfillJob(
                steps.for_executors(application),
                layout,
                histories,
                counts,
                root,
                work,
                changelog == "write",
                steps,
                show,
            )
            job.run()
            ends = _write_changelogs(job, logged, cluster)
        sent = {topic: files for topic, files in job.sent.items() if topic not in internal}
        if outputs == "topics" and cluster is not None:
            write_records(application, sent, work / "written")
            _skip_sent(cluster, layout, sent, offsets)
        else:
            moved = move_records(root, sent)
        manifest = _manifest(job, changelog, started_ms, offsets, ends)
        publish(root, manifest)
        for name in job.superseded:
            (root / name).unlink(missing_ok=True)
    return BackfillReport(manifest, {topic: job.sent_rows[topic] for topic in sent}, moved)


def _root(out: str | PurePath) -> Path:
    if is_url(out):
        raise ConfigError(
            f"{str(out)!r} is on no file system of this machine, and what passes between the steps of a backfill is "
            "kept in the folder; name one that all processes can reach, and copy it when it is whole (manifest.json "
            "last)"
        )
    return Path(out).absolute()


def _steps(
    engine: EngineName, application: Application, spark: object, modules: Sequence[str], processes: int | None
) -> Steps:
    if engine == "local":
        return LocalSteps(processes if isinstance(application.named, str) else 1)
    return SparkSteps(spark, modules)


def _check(
    application: Application, said: Mapping[str, TopicHistory], root: Path, changelog: Changelog, outputs: Outputs
) -> None:
    """Refuses what is known to be wrong before anything is read."""
    if changelog not in ("write", "base-only"):
        raise ConfigError(f"changelog is {changelog!r}; expected 'write' or 'base-only'")
    if outputs not in ("files", "topics"):
        raise ConfigError(f"outputs is {outputs!r}; expected 'files' or 'topics'")
    check_unpublished(root)
    if changelog == "base-only":
        described_stores = described(application.plan, application.config)
        for place in own_changelogs(application):
            why = needs_changelog(described_stores[place.name])
            if why is not None:
                raise ConfigError(f'store {place.name!r} {why}; its changelog has to be written: changelog="write"')


def _layout(
    application: Application,
    said: Mapping[str, TopicHistory],
    cluster: Cluster | None,
    partitions: int | Mapping[str, int] | None,
) -> tuple[TopicLayout, Mapping[str, int]]:
    """The topics and tasks that there are, and the partition counts that are known."""
    counts: dict[str, int] = {}
    if cluster is not None and partitions is None:
        counts = cluster.partition_counts()
    elif isinstance(partitions, Mapping):
        counts = dict(partitions)
    elif isinstance(partitions, int):
        plan = application.plan
        internal = internal_topics(application)
        topics = {topic for part in plan.subtopologies for topic in (*part.source_topics, *part.sink_topics)}
        topics.update((*said, *(store.topic for store in plan.global_stores)))
        counts = dict.fromkeys(topics - internal, partitions)
    return application.layout(counts), counts


def _check_topics(application: Application, layout: TopicLayout, said: Mapping[str, TopicHistory]) -> None:
    """Every topic that is read has a history, unless the topology itself writes it."""
    read = external_topics(application, layout)
    written = {topic for part in application.plan.subtopologies for topic in part.sink_topics}
    if unknown := sorted(set(said) - read):
        raise ConfigError(f"no part of the topology reads {unknown}; it reads {sorted(read)}")
    if missing := sorted(read - set(said) - written):
        raise ConfigError(f"the history of {missing} is missing, which the topology reads; say where it is")


def _history(topic: str, said: TopicHistory, application: Application, offsets: dict[str, dict[int, int]]) -> History:
    """Where the history of a topic is; one that is read itself is read to where the workers go on."""
    source = as_source(said.source)
    if not isinstance(source, KafkaTopic):
        return History(said, source)
    itself = source.topic == topic
    parts: list[TopicPart] = topic_parts(source, application.config, until=offsets.get(topic) if itself else None)
    if itself:
        offsets[topic] = {part.partition: part.end for part in parts}
    return History(said, None, tuple(TopicRecords(part) for part in parts))


def _write_changelogs(
    job: BackfillJob, logged: Sequence[StorePlace], cluster: Cluster | None
) -> dict[str, dict[int, int]]:
    """Writes what the stores logged; gives where each changelog ends then, by store and partition."""
    ends: dict[str, dict[int, int]] = {}
    calls: list[Call] = []
    stores: list[str] = []
    for place in logged:
        step = job.step(place.part)
        for partition, report in sorted(step.states.items()):
            files = report.logged[place.name].files
            if files:
                scratch = str(job.work / "logged" / f"{place.name}-{partition}")
                calls.append((write_changelog, (step, place.name, partition, files, scratch)))
                stores.append(place.name)
    oldest = list(zip(stores, job.steps.each(calls), strict=True))
    for place in logged:
        if cluster is not None:
            ends[place.name] = cluster.changelog_ends(place, job.layout)
            times = [time for store, time in oldest if store == place.name and time >= 0]
            cluster.warn_of_expiry(place, min(times, default=None))
    return ends


def _skip_sent(
    cluster: Cluster, layout: TopicLayout, sent: Mapping[str, Sequence[str]], offsets: dict[str, dict[int, int]]
) -> None:
    """Lets the application go on after the records that were written to topics that it reads itself."""
    for topic, ends in cluster.input_ends(layout).items():
        if topic in sent and topic in offsets:
            offsets[topic] = ends


def _manifest(
    job: BackfillJob,
    changelog: Changelog,
    started_ms: int,
    offsets: Mapping[str, Mapping[int, int]],
    ends: Mapping[str, Mapping[int, int]],
) -> Manifest:
    """The contents of the bootstrap: stores, and where the tasks were in stream time."""
    stores: dict[str, StoreManifest] = {}
    times: dict[str, dict[int, int]] = {}
    numbers: dict[str, dict[str, int]] = {}
    for part in job.application.plan.subtopologies:
        step = job.step(part)
        for name, description in step.stores.items():
            if description.in_files or name in step.logged_stores:
                found = {
                    partition: _files(report, name, ends.get(name, {}).get(partition, 0))
                    for partition, report in step.states.items()
                }
                stores[name] = StoreManifest(description, found)
        for partition, report in step.states.items():
            for topic, (_, text) in report.committed.items():
                time, values = decode(text)
                times.setdefault(topic, {})[partition] = time
                if values:
                    numbers.setdefault(str(step.task(partition)), {}).update(values)
    return Manifest(
        new_id(), job.application.config.application_id, started_ms, changelog, offsets, stores, times, numbers
    )


def _files(report: TaskReport, store: str, end: int) -> TaskFiles:
    files = report.stores.get(store)
    if files is None:
        return TaskFiles((), end, 0, end)
    return replace(files, changelog_offset=end)
