"""The user data of a subscription: what a member says of itself when it joins.

Layout of version 11 (``SubscriptionInfoData.json``, 4.3.1); lengths and counts are ints::

    int     version of the data          int     latest version that the member can write
    16      process id                   bytes   "host:port", or nothing
    array   of int sub-topology, int partition, long offset sum, short -1 (no named topology)
    byte    unique field                 int     error code
    array   of bytes key, bytes value: the client tags

Version 10 ends before the tags. Versions 7 to 9 have the sums by sub-topology: array of int sub-topology, array of int
partition, long offset sum. Version 8 ends before the error code, version 7 before the unique field.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.user_data import UserDataReader, UserDataWriter
from pykstreams.runtime.membership.protocol.versions import EARLIEST_VERSION, LATEST_VERSION

RUNNING: Final = -2
"""The offset sum of a task with state that the member works on as its active task."""
UNKNOWN_SUM: Final = -3
"""The offset sum of state whose offsets the member does not know."""

_WHAT = "subscription"
_NO_NAME = -1
_FLAT_SUMS = 10
_UNIQUE, _ERROR, _TAGS = 8, 9, 11
_UUID_SIZE = 16


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """A member's word about itself.

    :param offset_sums: for each task with state here, the sum of the offsets that it has reached in its changelogs,
        ``RUNNING`` or ``UNKNOWN_SUM``. Tasks without state are left out.
    :param unique: a number from -128 to 127 that changes with each join, so that the broker sees a difference
        (version 8).
    :param error: an ``AssignorError`` (version 9).
    :param tags: the client's tags (version 11).
    """

    process_id: ProcessId
    offset_sums: Mapping[TaskId, int]
    endpoint: str | None = None
    unique: int = 0
    error: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    version: int = LATEST_VERSION
    latest_version: int = LATEST_VERSION

    def encode(self) -> bytes:
        """Returns the bytes: tasks and tags are written in their order, so that equal values have equal bytes."""
        if not EARLIEST_VERSION <= self.version <= min(LATEST_VERSION, self.latest_version):
            raise TaskAssignmentError(
                f"a subscription of version {self.version} with {self.latest_version} as the latest cannot be "
                f"written; this release writes {EARLIEST_VERSION} to {LATEST_VERSION}"
            )
        out = UserDataWriter(_WHAT)
        out.int32(self.version)
        out.int32(self.latest_version)
        out.raw(self.process_id.id.bytes)
        out.text(self.endpoint or "")
        if self.version >= _FLAT_SUMS:
            self._write_sums(out)
        else:
            self._write_nested_sums(out)
        if self.version >= _UNIQUE:
            out.int8(self.unique)
        if self.version >= _ERROR:
            out.int32(self.error)
        if self.version >= _TAGS:
            out.int32(len(self.tags))
            for key, value in sorted(self.tags.items()):
                out.text(key)
                out.text(value)
        return out.finish()

    def _write_sums(self, out: UserDataWriter) -> None:
        out.int32(len(self.offset_sums))
        for task, offset_sum in sorted(self.offset_sums.items()):
            out.int32(task.subtopology)
            out.int32(task.partition)
            out.int64(offset_sum)
            out.int16(_NO_NAME)

    def _write_nested_sums(self, out: UserDataWriter) -> None:
        nested: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for task, offset_sum in sorted(self.offset_sums.items()):
            nested[task.subtopology].append((task.partition, offset_sum))
        out.int32(len(nested))
        for subtopology, sums in nested.items():
            out.int32(subtopology)
            out.int32(len(sums))
            for partition, offset_sum in sums:
                out.int32(partition)
                out.int64(offset_sum)


@dataclass(frozen=True, slots=True)
class FutureSubscription:
    """A subscription in a later version than this release can read: of those, only the two versions are known."""

    version: int
    latest_version: int


def decode_subscription(data: bytes) -> SubscriptionInfo | FutureSubscription:
    """Reads a member's user data; ``MalformedUserDataError``: it cannot be read."""
    source = UserDataReader(data, _WHAT)
    version = source.int32()
    if version < EARLIEST_VERSION:
        raise source.malformed(
            f"it is of version {version}; update the member that sent it to Kafka Streams 2.6 or later"
        )
    latest = source.int32()
    if latest < version:
        raise source.malformed(f"it is of version {version}, with {latest} as the latest")
    if version > LATEST_VERSION:
        return FutureSubscription(version, latest)
    process_id = ProcessId(uuid.UUID(bytes=source.raw(_UUID_SIZE)))
    endpoint = source.text() or None
    sums = _read_sums(source) if version >= _FLAT_SUMS else _read_nested_sums(source)
    unique = source.int8() if version >= _UNIQUE else 0
    error = source.int32() if version >= _ERROR else 0
    tags = _read_tags(source) if version >= _TAGS else {}
    source.end()
    return SubscriptionInfo(process_id, sums, endpoint, unique, error, tags, version, latest)


def _read_sums(source: UserDataReader) -> dict[TaskId, int]:
    sums: dict[TaskId, int] = {}
    for _ in range(source.count(18)):
        task = TaskId(source.int32(), source.int32())
        offset_sum = source.int64()
        if source.int16() != _NO_NAME:
            raise source.malformed(f"task {task} is of a named topology, which pykstreams does not have")
        _add(source, sums, task, offset_sum)
    return sums


def _read_nested_sums(source: UserDataReader) -> dict[TaskId, int]:
    sums: dict[TaskId, int] = {}
    for _ in range(source.count(8)):
        subtopology = source.int32()
        for _ in range(source.count(12)):
            task = TaskId(subtopology, source.int32())
            _add(source, sums, task, source.int64())
    return sums


def _add(source: UserDataReader, sums: dict[TaskId, int], task: TaskId, offset_sum: int) -> None:
    if task in sums or task.subtopology < 0 or task.partition < 0:
        raise source.malformed(f"task {task} is there twice, or is none")
    sums[task] = offset_sum


def _read_tags(source: UserDataReader) -> dict[str, str]:
    tags: dict[str, str] = {}
    for _ in range(source.count(8)):
        key = source.text()
        if key in tags:
            raise source.malformed(f"the client tag {key!r} is there twice")
        tags[key] = source.text()
    return tags
