"""The commit of a job: the reports of its tasks become one manifest, or nothing does.

Invariant: a share that no task has reported is an error, an empty one is reported, too; and of a share that was
reported twice one report counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pykstreams.bulk.stages.store_job import StoreJob
from pykstreams.core.errors import BootstrapError
from pykstreams.state.bulk.description import describe_store
from pykstreams.state.bulk.manifest import StoreManifest, TaskFiles
from pykstreams.state.bulk.sst import SstFile
from pykstreams.topology.placed_stores import placed_stores

_MASK = (1 << 128) - 1


@dataclass(frozen=True)
class BuiltStore:
    """One store as a job has built it.

    :param oldest: the lowest timestamp of the rows of its changelog.
    :param refused: how many rows were left out, by the kind of error.
    :param rejects: files of these rows, relative to the folder of the bootstrap.
    """

    manifest: StoreManifest
    rows: int
    oldest: int | None
    refused: Mapping[str, int]
    rejects: tuple[str, ...]


def built_store(job: StoreJob, reports: Iterable[str], changelog_ends: Mapping[int, int]) -> BuiltStore:
    """Puts together the reports of the tasks of one store.

    :param changelog_ends: by partition, the offset of the changelog that the files stand for.
    """
    by_share: dict[tuple[int, int], dict[str, Any]] = {}
    refused: Counter[str] = Counter()
    rejects: list[str] = []
    seen_refused = False
    for text in reports:
        found = json.loads(text)
        share = found["partition"], found["split"]
        if share in by_share or (found["partition"] is None and seen_refused):
            continue
        if found["partition"] is None:
            seen_refused = True
        else:
            by_share[share] = found
        refused.update(found["refused"])
        rejects += found["rejects"]
    unknown = set(by_share) - {tuple(share) for share in job.shares}
    if unknown:
        raise BootstrapError(
            f"tasks that are none of the job have told what they made of store {job.spec.store!r}: {sorted(unknown)}; "
            "nothing is published"
        )
    missing = [share for share in job.shares if share not in by_share]
    if missing or not seen_refused:
        raise BootstrapError(
            f"store {job.spec.store!r} is not complete: of {job.tasks} tasks of the job some have told nothing "
            f"(partition and part: {missing[:5]}); nothing is published, run the job again"
        )
    place, config = job.target.store, job.application.config
    description = describe_store(place.builder, config, place.part.id, place.changelog)
    partitions = sorted({share.partition for share in job.shares})
    tasks = {
        partition: _task(
            [by_share[share] for share in job.shares if share.partition == partition],
            changelog_ends.get(partition, 0),
            description.in_files,
        )
        for partition in partitions
    }
    partitioner = _chosen_by(job)
    rows = sum(task.rows for task in tasks.values())
    oldest = min((part["oldest"] for part in by_share.values() if part["oldest"] is not None), default=None)
    return BuiltStore(StoreManifest(description, tasks, partitioner), rows, oldest, dict(refused), tuple(rejects))


def _chosen_by(job: StoreJob) -> str:
    if job.spec.partitioner is not None:
        return repr(job.spec.partitioner)
    store = job.target.store
    placement = placed_stores(store.part).get(store.name)
    return "murmur2" if placement is None else placement.name


def _task(parts: list[dict[str, Any]], changelog_offset: int, in_files: bool) -> TaskFiles:
    files = [
        SstFile(**{**file, "first": bytes.fromhex(file["first"]), "last": bytes.fromhex(file["last"])})
        for part in parts
        for file in part["files"]
    ]
    return TaskFiles(
        tuple(files),
        sum(part["rows" if in_files else "logged"] for part in parts),
        sum(part["content"] for part in parts) & _MASK,
        changelog_offset,
        max(part["observed_time"] for part in parts),
    )
