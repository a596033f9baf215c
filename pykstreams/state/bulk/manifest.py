"""The manifest: which files make up which state, and where the application goes on from there.

It is the single point of publication. Layout of a bootstrap::

    <folder>/
        manifest.json                                       written last, by rename: without it there is no bootstrap
        stores/<store>/<task id>/<attempt>-<split>-<n>.sst  named in the manifest, or garbage

Invariant: a manifest that was published names every task of each of its stores, and each of its files was there then.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import mmh3

from pykstreams.core.errors import BootstrapError
from pykstreams.core.ids import TaskId
from pykstreams.state.bulk.description import StoreDescription, fingerprint
from pykstreams.state.bulk.folder import BESIDE, MANIFEST, UNFINISHED, AnyFolder, Folder, LocalFolder, folder_at
from pykstreams.state.bulk.job_lock import LOCK, WORK
from pykstreams.state.bulk.sst import SstFile
from pykstreams.state.interfaces.engine import Row

FORMAT: Final = 1
_STORES: Final = "stores"
_MASK: Final = (1 << 128) - 1
_LENGTH: Final = struct.Struct(">I")
_VERIFYING_THREADS: Final = 2
_SHOWN: Final = 5  # problems that a message lists at most

Changelog: TypeAlias = Literal["write", "base-only"]
"""Whether the rows are in the changelog, too, or the manifest is needed for as long as the store lives."""

ByPartition: TypeAlias = Mapping[str, Mapping[int, int]]
"""Topic -> partition -> number."""


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The files of one task of a store.

    :param files: none for an empty task, and for a store whose rows are in the changelog alone.
    :param rows: how many rows they have; those in the changelog where there are no files.
    :param content: the ``content_hash`` of the rows.
    :param changelog_offset: the offset of the changelog from which on a store restores that took over the files.
    :param observed_time: the highest time that was put (``OfflineStore.observed_time``).
    """

    files: tuple[SstFile, ...]
    rows: int
    content: int
    changelog_offset: int
    observed_time: int = -1


@dataclass(frozen=True, slots=True)
class StoreManifest:
    """One store, with its tasks by partition number."""

    description: StoreDescription
    tasks: Mapping[int, TaskFiles]
    partitioner: str = "murmur2"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A bootstrap.

    :param id: 32 hexadecimal digits that no other bootstrap has (``new_id``).
    :param source_offsets: the next offset to read of each input.
    :param source_times: the stream time of each partition of an input, as far as it is known.
    :param metadata: numbers of operators by sub-topology and partition (``0_1``), as they are committed with offsets.
    """

    id: str
    application_id: str
    created_ms: int
    changelog: Changelog
    source_offsets: ByPartition
    stores: Mapping[str, StoreManifest]
    source_times: ByPartition = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """The hash over what makes its stores readable."""
        return fingerprint([store.description for store in self.stores.values()])

    @property
    def number(self) -> int:
        """Its id as a number that fits beside committed offsets: 62 bits."""
        return int(self.id, 16) >> 66

    def task_files(self, task_id: TaskId) -> dict[str, TaskFiles]:
        """The files of a task, by store."""
        return {
            name: store.tasks[task_id.partition]
            for name, store in self.stores.items()
            if store.description.subtopology == task_id.subtopology
        }

    def files(self) -> Iterator[SstFile]:
        """Every file."""
        for store in self.stores.values():
            for task in store.tasks.values():
                yield from task.files


def new_id() -> str:
    """An id for a bootstrap."""
    return os.urandom(16).hex()


def store_folder(store: str, task_id: TaskId) -> str:
    """Where the files of a task lie, relative to the folder of the bootstrap.

    >>> store_folder("counts", TaskId(0, 3))
    'stores/counts/0_3'
    """
    return f"{_STORES}/{store}/{task_id}"


def content_hash(rows: Iterable[Row], before: int = 0) -> int:
    """Sums the hashes of rows modulo 2^128: equal for equal rows in any order, in any files.

    The hash of a row is the 128-bit murmur3 of ``length of key (4, big-endian) | key | packed value``.

    :param before: the sum so far; sums of parts may also be added (and reduced) by whoever has them.

    >>> content_hash([(b"a", b"1"), (b"b", b"2")]) == content_hash([(b"a", b"1")], content_hash([(b"b", b"2")]))
    True
    """
    length, hashed = _LENGTH.pack, mmh3.hash128
    return (before + sum([hashed(length(len(key)) + key + packed, signed=False) for key, packed in rows])) & _MASK


def publish(where: AnyFolder, manifest: Manifest) -> None:
    """Makes a bootstrap of files that are there; until it returns there is none, after it there is.

    Raises ``BootstrapError`` for one that workers would have to refuse, or if the folder holds one already.
    """
    folder = folder_at(where)
    if folder.has(MANIFEST):
        raise BootstrapError(
            f"{str(folder)!r} holds bootstrap {read(folder).id} already; a bootstrap is never changed, write to a new "
            "folder"
        )
    problems = [*_incomplete(manifest), *_file_problems(folder, manifest, hashes=False)]
    if problems:
        raise BootstrapError(f"bootstrap {manifest.id} in {str(folder)!r} is not published: {_listed(problems)}")
    folder.publish(MANIFEST, json.dumps(_to_json(manifest), indent=1).encode())


def read(where: AnyFolder) -> Manifest:
    """Reads what was published; ``BootstrapError`` says what is wrong with anything else."""
    folder = folder_at(where)
    path = f"{folder}/{MANIFEST}"
    try:
        with folder.open(MANIFEST) as file:
            found = json.loads(file.read())
    except FileNotFoundError as error:
        raise BootstrapError(
            f"there is no bootstrap in {str(folder)!r}: {MANIFEST} is missing. Either the job that writes it has not "
            "finished, or the path is wrong"
        ) from error
    except (OSError, ValueError) as error:
        raise BootstrapError(f"{path!r} cannot be read: {error}; bootstrap again to a new folder") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        got = found.get("format") if isinstance(found, dict) else found
        raise BootstrapError(
            f"{path!r} has the format {got!r}; this release reads format {FORMAT}. Use the release that wrote it, "
            "or bootstrap again"
        )
    try:
        manifest = _from_json(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BootstrapError(
            f"{path!r} is damaged: {type(error).__name__} {error}; bootstrap again to a new folder"
        ) from error
    problems = [*_incomplete(manifest)]
    if manifest.fingerprint != found.get("fingerprint"):
        problems.append("its fingerprint is not that of the stores it describes")
    if problems:
        raise BootstrapError(f"{path!r} is damaged: {_listed(problems)}; bootstrap again to a new folder")
    return manifest


def verify(where: AnyFolder, manifest: Manifest, *, hashes: bool = True) -> list[str]:
    """The fault in the files of a bootstrap, in words; nothing when all is well.

    :param hashes: whether the files are read, too, or only looked for.
    """
    return list(_file_problems(folder_at(where), manifest, hashes=hashes))


def check_file(path: Path, file: SstFile) -> str | None:
    """The fault in what was made of a file, after reading all of it."""
    return _read_through(LocalFolder(path.parent), replace(file, path=path.name), named=file.path)


def garbage(where: AnyFolder) -> list[str]:
    """The names of files that a bootstrap does not need: of attempts that failed, or came second.

    Without a bootstrap, all that a job has left that failed; ``BootstrapError`` where none was.
    """
    folder = folder_at(where)
    made: tuple[str, ...] = (f"{_STORES}/", UNFINISHED, WORK)  # all else is somebody else's
    needed: set[str] = set()
    if folder.has(MANIFEST) or not folder.has(LOCK):
        needed = {file.path for file in read(folder).files()}
    else:
        made = (*made, *(f"{name}/" for name in BESIDE))
    return [name for name in folder.names() if name.startswith(made) and name not in needed]


def _incomplete(manifest: Manifest) -> Iterator[str]:
    """The keys that a manifest lacks."""
    if manifest.changelog not in ("write", "base-only"):
        yield f"its changelog is {manifest.changelog!r}, and can be 'write' or 'base-only'"
    if len(manifest.id) != 32:
        yield f"its id {manifest.id!r} has not 32 hexadecimal digits"
    if not manifest.stores:
        yield "it has no stores"
    sizes: dict[int, tuple[str, int]] = {}
    for name, store in manifest.stores.items():
        about = store.description
        if sorted(store.tasks) != list(range(len(store.tasks))) or not store.tasks:
            yield f"store {name!r} has the tasks {sorted(store.tasks)}, and one is missing (empty ones count, too)"
        other, size = sizes.setdefault(about.subtopology, (name, len(store.tasks)))
        if size != len(store.tasks):
            yield f"store {name!r} has {len(store.tasks)} tasks, and {other!r} of the same sub-topology has {size}"
        for partition, task in store.tasks.items():
            if task.files and not about.in_files:
                yield f"store {name!r} has files, and a worker does not keep it on disk"
            if about.in_files and task.rows != sum(file.rows for file in task.files):
                yield f"task {partition} of store {name!r} counts other rows than its files have"
        if manifest.changelog == "base-only":
            if not about.in_files:
                yield (
                    f"store {name!r} is not kept on disk, so that its rows must be in its changelog; use "
                    "changelog='write'"
                )
            elif about.shape.get("retain_duplicates"):
                yield f"store {name!r} numbers its rows by its changelog, so they must be there; use changelog='write'"


def _file_problems(folder: Folder, manifest: Manifest, *, hashes: bool) -> Iterator[str]:
    check = _read_through if hashes else _look_at
    with ThreadPoolExecutor(_VERIFYING_THREADS) as threads:
        yield from filter(None, threads.map(lambda file: check(folder, file, file.path), manifest.files()))


def _look_at(folder: Folder, file: SstFile, named: str) -> str | None:
    """The fault in a file at first sight; ``named`` is what it is called."""
    try:
        size = folder.size(file.path)
    except FileNotFoundError:
        return f"{named} is missing"
    except OSError as error:
        return f"{named} cannot be read ({error})"
    return None if size == file.size else f"{named} has {size} bytes instead of {file.size}"


def _read_through(folder: Folder, file: SstFile, named: str) -> str | None:
    problem = _look_at(folder, file, named)
    if problem is not None:
        return problem
    with folder.open(file.path) as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest == file.sha256:
        return None
    return f"{named} is damaged: its sha256 is {digest[:12]}... instead of {file.sha256[:12]}..."


def _listed(problems: Collection[str]) -> str:
    shown = list(problems)[:_SHOWN]
    more = len(problems) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _to_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "id": manifest.id,
        "application_id": manifest.application_id,
        "created_ms": manifest.created_ms,
        "fingerprint": manifest.fingerprint,
        "changelog": manifest.changelog,
        "source_offsets": manifest.source_offsets,
        "source_times": manifest.source_times,
        "metadata": manifest.metadata,
        "stores": {
            name: {
                **asdict(store.description),
                "partitions": len(store.tasks),
                "partitioner": store.partitioner,
                "tasks": {str(partition): _task_to_json(task) for partition, task in sorted(store.tasks.items())},
            }
            for name, store in manifest.stores.items()
        },
    }


def _task_to_json(task: TaskFiles) -> dict[str, Any]:
    files = [{**asdict(file), "first": file.first.hex(), "last": file.last.hex()} for file in task.files]
    return {**asdict(task), "content": f"{task.content:032x}", "files": files}


def _from_json(found: Mapping[str, Any]) -> Manifest:
    return Manifest(
        _text(found["id"]),
        _text(found["application_id"]),
        int(found["created_ms"]),
        cast("Changelog", _text(found["changelog"])),
        _by_partition(found["source_offsets"]),
        {name: _store_from_json(name, store) for name, store in found["stores"].items()},
        _by_partition(found["source_times"]),
        {task: {key: int(value) for key, value in values.items()} for task, values in found["metadata"].items()},
    )


def _store_from_json(name: str, found: Mapping[str, Any]) -> StoreManifest:
    description = StoreDescription(
        name,
        _text(found["kind"]),
        _text(found["layout"]),
        {key: int(value) for key, value in found["shape"].items()},
        _text(found["key_serde"]),
        _text(found["value_serde"]),
        int(found["subtopology"]),
        bool(found["in_files"]),
        None if found["changelog"] is None else _text(found["changelog"]),
    )
    tasks = {int(partition): _task_from_json(task) for partition, task in found["tasks"].items()}
    if len(tasks) != found["partitions"]:
        raise ValueError(f"store {name!r} has {len(tasks)} of {found['partitions']} tasks")
    return StoreManifest(description, tasks, _text(found["partitioner"]))


def _task_from_json(found: Mapping[str, Any]) -> TaskFiles:
    files = tuple(
        SstFile(
            _text(file["path"]),
            int(file["rows"]),
            int(file["size"]),
            _text(file["sha256"]),
            bytes.fromhex(file["first"]),
            bytes.fromhex(file["last"]),
        )
        for file in found["files"]
    )
    offset, time = int(found["changelog_offset"]), int(found["observed_time"])
    return TaskFiles(files, int(found["rows"]), int(found["content"], 16), offset, time)


def _by_partition(found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[int, int]]:
    return {topic: {int(place): int(number) for place, number in places.items()} for topic, places in found.items()}


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise TypeError(f"{found!r} stands where text is expected")
    return found
