"""``bootstrap``: state of an application from a snapshot, as a folder that workers start from.

The order of events makes it safe: the offsets of the sources are noted *before* the snapshot is read, so nothing that
the snapshot lacks is skipped; the manifest is written last, at once and only if every task has reported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Literal, TypeAlias, cast, get_args

from pykstreams.bulk.application import Application
from pykstreams.bulk.brokers.cluster import Cluster, SourceOffsets, noted_offsets
from pykstreams.bulk.engines.local import LocalEngine
from pykstreams.bulk.progress import shown_progress
from pykstreams.bulk.publication import BuiltStore, built_store
from pykstreams.bulk.sources.sources import Files, KafkaTopic, as_source
from pykstreams.bulk.sources.store_bootstrap import StoreBootstrap
from pykstreams.bulk.stages.store_job import StoreJob
from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.bulk.folder import Folder, folder_at, is_url
from pykstreams.state.bulk.job_lock import check_unpublished, held_by_job
from pykstreams.state.bulk.manifest import Changelog, Manifest, new_id, publish
from pykstreams.topology.topology import Topology

log = logging.getLogger(__name__)

EngineName: TypeAlias = Literal["local", "spark"]
"""Who runs a job."""

Wanted: TypeAlias = tuple[StoreJob, Any]
"""(job, source)"""

Built: TypeAlias = tuple[StoreJob, list[str]]
"""(job as it was done, the reports of its tasks)"""

Build: TypeAlias = Callable[[Sequence[Wanted]], Iterable[Built]]


@dataclass(frozen=True)
class BootstrapReport:
    """The outcome of a bootstrap.

    :param manifest: what was published.
    :param stores: by name: how many rows, and which were refused.
    """

    manifest: Manifest
    stores: Mapping[str, BuiltStore]


def bootstrap(
    app: str | Topology,
    stores: Sequence[StoreBootstrap],
    *,
    out: str | PurePath,
    engine: EngineName = "spark",
    changelog: Changelog = "write",
    source_offsets: SourceOffsets = "now",
    config: StreamsConfig | Mapping[str, object] | None = None,
    partitions: int | Mapping[str, int] | None = None,
    spark: object = None,
    modules: Sequence[str] = (),
    processes: int | None = None,
    progress: bool = False,
) -> BootstrapReport:
    """Builds stores from snapshots, and publishes them in a folder for ``pykstreams run ... --bootstrap``.

    :param app: the application as ``module:attribute`` or a script; a ``Topology`` does where no other process is used.
    :param out: a new folder, which every process of the job can write to: a path, or a URL that fsspec knows.
    :param engine: ``"spark"``, or ``"local"`` for processes of this machine without Spark.
    :param changelog: ``"write"`` also writes the rows to the changelog topics, so that any worker can restore them;
        ``"base-only"`` does not, and the folder is needed for as long as the stores live.
    :param source_offsets: ``"now"`` notes the ends of all input topics before the snapshot is read: right for
        snapshots of the very topics, or of a database whose changes all are in them by now. A mapping topic ->
        partition -> next offset is what the snapshot stands for. ``None`` leaves the offsets to the workers. A
        ``KafkaTopic`` is read up to the offset that is noted for it, and not beyond.
    :param config: settings of the application, ``bootstrap.servers`` for instance; those of its script apply else.
    :param partitions: the partition counts of the input topics, as one number or by topic; left out, the cluster is
        asked.
    :param spark: the session to use; left out, the current one, or a local one with all cores.
    :param modules: for Spark: files and folders of the application's code that executors need (the script itself is).
    :param processes: for the local engine; left out, as many as there are cores.
    :param progress: whether to show how far it is.
    """
    settings = dict(config.originals if isinstance(config, StreamsConfig) else config or {})
    application = Application(app, settings)
    root = folder_at(str(out) if is_url(out) else Path(out).absolute())
    _check(application, stores, root, changelog, engine)
    _warn_of_left_out(application, {spec.store for spec in stores})
    cluster = Cluster(application) if changelog == "write" or source_offsets == "now" or partitions is None else None
    if cluster is not None and changelog == "write":
        cluster.check_idle()
    layout = _layout(application, cluster, partitions, writes=changelog == "write")
    offsets = noted_offsets(source_offsets, cluster, layout)
    started_ms = SystemClock().now_ms()
    built: dict[str, BuiltStore] = {}
    with held_by_job(root), _builder(engine, application, spark, modules, processes, progress) as build:
        wanted = [
            _job(application, spec, layout, started_ms, root, changelog, offsets, as_source(spec.source))
            for spec in stores
        ]
        if cluster is not None:
            cluster.check_empty((job.target.store for job, _ in wanted if job.logs), layout)
        for job, reports in build(wanted):
            ends = cluster.changelog_ends(job.target.store, layout) if job.logs and cluster is not None else {}
            name = job.spec.store
            built[name] = built_store(job, reports, ends)
            if job.logs and cluster is not None:
                cluster.warn_of_expiry(job.target.store, built[name].oldest)
            log.info("store %s: %s rows, refused: %s", name, built[name].rows, built[name].refused)
        manifest = Manifest(
            new_id(),
            application.config.application_id,
            started_ms,
            changelog,
            offsets,
            {name: store.manifest for name, store in built.items()},
        )
        publish(root, manifest)
    return BootstrapReport(manifest, built)


def _job(
    application: Application,
    spec: StoreBootstrap,
    layout: TopicLayout,
    started_ms: int,
    root: Folder,
    changelog: Changelog,
    offsets: Mapping[str, Mapping[int, int]],
    source: object,
) -> tuple[StoreJob, object]:
    """The building of one store, and its source."""
    topic = source if isinstance(source, KafkaTopic) else None
    job = StoreJob(
        application,
        replace(spec, source=topic, latest=spec.latest or topic is not None),
        layout,
        started_ms,
        str(root),
        changelog == "write" and application.store(spec.store).own_changelog,
        topic,
        {} if topic is None else offsets.get(topic.topic, {}),
    )
    return job, source


@contextmanager
def _builder(
    engine: EngineName,
    application: Application,
    spark: object,
    modules: Sequence[str],
    processes: int | None,
    shown: bool,
) -> Iterator[Build]:
    """Opens the engine, and makes the function that builds stores by it."""
    if engine == "spark":
        from pykstreams.bulk.engines.spark import SparkEngine

        spark_engine = SparkEngine(spark, modules)

        def build_together(wanted: Sequence[Wanted]) -> Iterable[Built]:
            with shown_progress("stores", shown) as progress:
                return spark_engine.build(wanted, progress)

        yield build_together
        return
    with LocalEngine(processes if isinstance(application.named, str) else 1) as local:

        def build_each(wanted: Sequence[Wanted]) -> Iterable[Built]:
            for job, source in wanted:
                with shown_progress(job.spec.store, shown) as progress:
                    yield local.build(job, _parts(source, job), progress)

        yield build_each


def _layout(
    application: Application, cluster: Cluster | None, partitions: int | Mapping[str, int] | None, *, writes: bool
) -> TopicLayout:
    """How many tasks there are; makes the topics of the application if its changelogs are written."""
    if partitions is not None:
        layout = application.layout(partitions)
    else:
        layout = cast("Cluster", cluster).layout()
    return layout if cluster is None or not writes else cluster.prepared(layout)


def check_engine(engine: str) -> None:
    """Refuses an engine that there is not."""
    if engine not in get_args(EngineName):
        raise ConfigError(f"engine is {engine!r}; expected 'spark' or 'local'")


def _check(
    application: Application, stores: Sequence[StoreBootstrap], root: Folder, changelog: Changelog, engine: EngineName
) -> None:
    """Refuses what is known to be wrong before anything is read."""
    check_engine(engine)
    if changelog not in ("write", "base-only"):
        raise ConfigError(f"changelog is {changelog!r}; expected 'write' or 'base-only'")
    names = [spec.store for spec in stores]
    if not names:
        raise ConfigError("no store is named; give at least one StoreBootstrap")
    if len(set(names)) < len(names):
        raise ConfigError(f"stores {names} are not different; a store is built once")
    check_unpublished(root)
    for name in names:
        place = application.store(name)
        if changelog == "write" and place.changelog is None:
            raise ConfigError(
                f"store {name!r} has no changelog that could be written (with_logging_disabled); use "
                'changelog="base-only"'
            )


def _warn_of_left_out(application: Application, made: AbstractSet[str]) -> None:
    """Warns of stores of the same tasks that are not made, such as that of the result of a join."""
    left_out = sorted(
        name
        for part in application.plan.subtopologies
        if not made.isdisjoint(part.stores)
        for name in part.changelogs
        if name not in made
    )
    if left_out:
        log.warning(
            "%s of the same tasks %s not made, and %s empty: what the snapshot stands for is in none of them. Make "
            "them, too, if they are to have it",
            ", ".join(f"store {name!r}" for name in left_out),
            "is" if len(left_out) == 1 else "are",
            "begins" if len(left_out) == 1 else "begin",
        )


def _parts(source: object, job: StoreJob) -> list[Any]:
    if isinstance(source, Files):
        return source.parts()
    if isinstance(source, KafkaTopic):
        from pykstreams.bulk.sources.topic_parts import topic_parts

        config, partitions = job.application.config, job.source_partitions
        return list(topic_parts(source, config, partitions, job.until, headers=job.carries_headers))
    raise ConfigError(f"{source!r} is read by Spark; use engine='spark', or files that pyarrow reads")
