"""Tiny bootstraps: stores with changelog rows, and manifests of the files made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TaskId
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import Stores
from pykstreams.state.bulk.description import describe_store
from pykstreams.state.bulk.manifest import Manifest, StoreManifest, TaskFiles, content_hash, store_folder
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.sst import SstFiles
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.state.spec import StoreBuilder

APPLICATION = "shop"
CONFIG = StreamsConfig(
    {"application.id": APPLICATION, "default.key.serde": StringSerde(), "default.value.serde": JsonSerde()}
)
TASK = TaskId(0, 0)
ID = "0123456789abcdef" * 2


def counts(name: str = "counts") -> StoreBuilder[Any]:
    """A timestamped key-value store of text and JSON."""
    supplier = Stores.persistent_timestamped_key_value_store(name)
    return Stores.timestamped_key_value_store_builder(supplier, StringSerde(), JsonSerde())


def rows_of(values: Mapping[str, str], timestamp: int = 1000) -> list[ChangelogRow]:
    """Changelog rows of a key-value store."""
    return [(key.encode(), value.encode(), timestamp, ()) for key, value in values.items()]


@dataclass
class Part:
    """What one task of a store is made from."""

    rows: Iterable[ChangelogRow]
    changelog_offset: int = 0


def write_task(
    folder: Path, builder: StoreBuilder[Any], part: Part, *, task_id: TaskId = TASK, max_bytes: int = 1 << 20
) -> TaskFiles:
    """Writes the files of a task, all of whose rows are folded at once."""
    with OfflineStore.in_memory(builder, task_id, CONFIG) as store:
        store.restore(list(part.rows))
        found = sorted(store.drain())
        observed = store.observed_time
    files = SstFiles(folder, store_folder(builder.name, task_id), "0-0", builder, CONFIG, max_bytes)
    files.add(found)
    return TaskFiles(tuple(files.finish()), len(found), content_hash(found), part.changelog_offset, observed)


def bootstrap(folder: Path, stores: Iterable[tuple[StoreBuilder[Any], Mapping[int, Part]]], **more: Any) -> Manifest:
    """Writes the files of stores of sub-topology 0, by partition, and gives the manifest, which is not published."""
    written = {}
    for builder, parts in stores:
        description = describe_store(builder, CONFIG, 0, f"{APPLICATION}-{builder.name}-changelog")
        tasks = {number: write_task(folder, builder, part, task_id=TaskId(0, number)) for number, part in parts.items()}
        written[builder.name] = StoreManifest(description, tasks)
    manifest = Manifest(ID, APPLICATION, 0, "write", {"orders": {0: 10, 1: 11}}, written)
    return replace(manifest, **more)
