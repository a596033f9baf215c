"""The stores that workers leave behind: each copy that is as new as its changelog must hold what that says.

Invariant: it is read when all workers have ended in order, so no store is ahead of its changelog.
"""

from __future__ import annotations

import importlib
import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykstreams import StreamsConfig
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.places import places_of
from pykstreams.state.bulk.typed_rows import StateRow
from pykstreams.state.directory.state_directory import application_folder
from pykstreams.state.directory.task_checkpoint import read_checkpoint
from tests.faults.applications import Application
from tests.faults.topics import Output

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Copy:
    """What one worker has of one partition of a store."""

    worker: str
    partition: int
    offset: int
    """How far it is in its changelog."""
    rows: Mapping[str, object]


def check_copies(
    copies: Collection[Copy], expected: Mapping[str, object], agrees: Callable[[Any, Any], bool] = operator.eq
) -> list[str]:
    """Of each partition the newest copies are alike, and together they hold what they must.

    :param agrees: whether what was found is what was expected.
    """
    by_partition: defaultdict[int, list[Copy]] = defaultdict(list)
    for copy in copies:
        by_partition[copy.partition].append(copy)
    wrong = []
    found: dict[str, object] = {}
    for partition, some in sorted(by_partition.items()):
        newest = max(copy.offset for copy in some)
        first, *others = [copy for copy in some if copy.offset == newest]
        found.update(first.rows)
        for other in others:
            if other.rows != first.rows:
                wrong.append(f"partition {partition} of {other.worker} is not that of {first.worker} at {newest}")
    if missing := expected.keys() - found.keys():
        wrong.append(f"{len(missing)} of {len(expected)} keys are missing: {sorted(missing)[:_SHOWN]}")
    if more := found.keys() - expected.keys():
        wrong.append(f"{len(more)} keys are too many: {sorted(more)[:_SHOWN]}")
    other_rows = sorted(key for key in expected.keys() & found.keys() if not agrees(found[key], expected[key]))
    if other_rows:
        shown = [f"{key} is {found[key]!r}, not {expected[key]!r}" for key in other_rows[:_SHOWN]]
        wrong.append(f"{len(other_rows)} of {len(expected)} keys are otherwise: {'; '.join(shown)}")
    return wrong


def copies_of(application: Application, folders: Mapping[str, Path], output: Output) -> Iterator[Copy]:
    """Reads what workers have of a store on disk, as ``pykstreams state`` does.

    :param folders: the state directories of workers of Python, by worker.
    """
    settings = {**application.settings, "application.id": application.name, "bootstrap.servers": "localhost:1"}
    script = importlib.import_module(f"tests.faults.{Path(application.kind.program.script).stem}")
    for worker, folder in folders.items():
        config = StreamsConfig({**settings, "state.dir": str(folder)})
        plan = script.build(config).plan(config)
        (part,) = [part for part in plan.subtopologies if output.store in part.stores]
        root = application_folder(config.state_dir, config.application_id)
        for place in places_of(root, output.store, [part.id]) if root.is_dir() else []:
            offset = read_checkpoint(place.folder).get(output.store)
            if offset is not None:
                with OfflineStore.in_folder(part.stores[output.store], place.task_id, config, place.folder) as store:
                    rows = {_key(row, output): row.value for row in store.rows() if _is_newest(row, output)}
                yield Copy(worker, place.task_id.partition, offset, rows)


def _key(row: StateRow, output: Output) -> str:
    return f"{row.key}@{row.start}" if output is Output.WINDOWS else str(row.key)


def _is_newest(row: StateRow, output: Output) -> bool:
    """Whether it is not an old version of a row."""
    return output is not Output.RATED or row.end is None
