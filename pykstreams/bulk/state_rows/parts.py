"""Where the state of a store can be read: folders of tasks and copies of them, bootstraps, changelog topics.

Each is divided into parts, one a task or a partition, that can be opened in any process. What is no database yet, the
files of a bootstrap and the records of a changelog, becomes one in a temporary folder, by what a worker would do: so
memory stays small, and the store itself says what its rows are.

Invariant: nothing is changed by reading, and a part that is opened again gives the same rows as long as nobody changes
what is behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Protocol

import pyarrow as pa

from pykstreams.bulk.sources.sources import KafkaTopic
from pykstreams.bulk.sources.topic_parts import TopicPart, topic_parts
from pykstreams.bulk.state_rows.views import StoreSelection
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import BootstrapError, ConfigError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.snapshot import read_partition
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from pykstreams.runtime.restore.restore import changelog_columns
from pykstreams.state.bulk.description import describe_store, differences
from pykstreams.state.bulk.folder import MANIFEST, Folder, folder_at
from pykstreams.state.bulk.manifest import TaskFiles, read
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.places import StoreFolder, held, place_of_task, places_of, was_closed
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from pykstreams.state.directory.state_directory import application_folder
from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.store_kinds import StoreKind, buffer_refused, kind_of


class StatePart(Protocol):
    """The store of one task; it can be pickled."""

    @property
    def task_id(self) -> TaskId:
        """The task; a number below 0 is not known."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether all that was committed is known to be in it."""
        ...

    def opened(self, view: StoreSelection) -> AbstractContextManager[OfflineStore]:
        """Opens it for as long as the context manager lasts."""
        ...


def state_parts(view: StoreSelection, path: str | None = None, topic: str | None = None) -> list[StatePart]:
    """The parts of a store; ``ConfigError`` where there is nothing of it.

    :param path: a ``state.dir``, or the folder of the application in it; the folder of one task; copies
        of these; a bootstrap. Left out: where the application keeps its state on this machine.
    :param topic: its changelog, instead of a folder.
    """
    planned = view.planned  # before anything is looked for: it says what is wrong with the store
    if kind_of(planned.build()) is StoreKind.BUFFER:
        raise ConfigError(buffer_refused(view.store))
    if topic is not None:
        if path is not None:
            raise ConfigError(f"both the folder {path!r} and the topic {topic!r} are to be read; name one of them")
        return _of_topic(view, topic)
    application = view.application.config.application_id
    bootstrap = None if path is None else folder_at(path)
    if bootstrap is not None and bootstrap.has(MANIFEST):
        return _of_bootstrap(view, bootstrap)
    config = view.application.config
    folder = application_folder(config.state_dir, application) if path is None else Path(path)
    if not planned.build().persistent:
        raise ConfigError(
            f"store {view.store!r} is kept in memory, so nothing of it is on disk; read its changelog (topic "
            f"{view.serde_topic!r})"
        )
    if (folder / "rocksdb" / view.store).is_dir():
        return [_Folder(place_of_task(folder))]
    for root in (folder, application_folder(folder, application)):
        places = places_of(root, view.store, view.subtopologies)
        if places:
            return [_Folder(place) for place in places]
    raise ConfigError(
        f"there is no state of store {view.store!r} in {str(folder)!r}; name the state.dir of a worker, "
        "a copy of it, the folder of a bootstrap, or the changelog topic"
    )


def part_batches(view: StoreSelection, part: StatePart, schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a part; ``schema`` as ``StoreSelection.batches`` takes it."""
    with part.opened(view) as opened:
        yield from view.batches(opened, part.task_id, schema)


@dataclass(frozen=True)
class _Folder:
    """The folder of a task."""

    place: StoreFolder

    @property
    def task_id(self) -> TaskId:
        return self.place.task_id

    @property
    def is_complete(self) -> bool:
        return was_closed(self.place)

    @contextmanager
    def opened(self, view: StoreSelection) -> Iterator[OfflineStore]:
        with held(self.place), _read_only(view, self.task_id, self.place.folder) as store:
            yield store


@dataclass(frozen=True)
class _Files:
    """The files of a task in a bootstrap; they are verified."""

    folder: Folder
    task_id: TaskId
    files: TaskFiles
    is_complete: ClassVar[bool] = True

    @contextmanager
    def opened(self, view: StoreSelection) -> Iterator[OfflineStore]:
        config = view.application.config
        wanted = StoreToMake(view.builder, self.files, None, view.serde_topic)
        with TemporaryDirectory(prefix="pykstreams-") as made:
            take_over(Path(made), self.task_id, self.folder, [wanted], config, "to be read")
            with _read_only(view, self.task_id, Path(made)) as store:
                yield store


@dataclass(frozen=True)
class _Records:
    """One partition of a changelog, as it is now."""

    part: TopicPart
    subtopology: int
    is_complete: ClassVar[bool] = True

    @property
    def task_id(self) -> TaskId:
        return TaskId(self.subtopology, self.part.partition)

    @contextmanager
    def opened(self, view: StoreSelection) -> Iterator[OfflineStore]:
        part, supplier = self.part, DefaultKafkaClientSupplier()
        config = StreamsConfig({**view.application.config.originals, **part.settings})
        place = TopicPartition(part.topic, part.partition)
        with (
            TemporaryDirectory(prefix="pykstreams-") as made,
            OfflineStore(
                view.builder, self.task_id, config, RocksDbEngine, directory=Path(made), topic=view.serde_topic
            ) as store,
        ):
            for messages in read_partition(supplier, config, place, part.begin, part.end):
                store.store.restore(changelog_columns(messages))
            store.store.commit(None)
            yield store


def _read_only(view: StoreSelection, task_id: TaskId, folder: Path) -> OfflineStore:
    return OfflineStore.in_folder(view.builder, task_id, view.application.config, folder, topic=view.serde_topic)


def _of_bootstrap(view: StoreSelection, folder: Folder) -> list[StatePart]:
    found = read(folder).stores.get(view.store)
    if found is None:
        raise ConfigError(
            f"the bootstrap in {str(folder)!r} has no store {view.store!r}; it has {sorted(read(folder).stores)}"
        )
    about = found.description
    planned = describe_store(view.planned, view.application.config, about.subtopology, about.changelog)
    unlike = differences(about, planned)
    if unlike:
        raise BootstrapError(
            f"store {view.store!r} of the bootstrap in {str(folder)!r} was written by another topology: "
            f"{'; '.join(unlike)}. Name the application that it was made for"
        )
    if not about.in_files:
        raise ConfigError(
            f"store {view.store!r} is kept in memory, so the bootstrap in {str(folder)!r} has no files of it; read its "
            f"changelog (topic {view.serde_topic!r})"
        )
    tasks = sorted(found.tasks.items())
    return [_Files(folder, TaskId(about.subtopology, partition), files) for partition, files in tasks]


def _of_topic(view: StoreSelection, topic: str) -> list[StatePart]:
    config = view.application.config
    if "bootstrap.servers" not in config:
        raise ConfigError(f"no brokers are named (bootstrap.servers), and topic {topic!r} is to be read; name them")
    subtopology = next(iter(view.subtopologies), -1)
    return [_Records(part, subtopology) for part in topic_parts(KafkaTopic(topic), config)]
