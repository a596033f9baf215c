"""How far the topics of global stores have been read, kept beside the stores.

Stores are committed under a number that grows; the file says, for each of the last commits, the offsets that it stood
for. A store that comes back after a crash knows under which number it was last durable, and so what to read again.

The file is JSON::

    {"version": 1, "commits": [{"number": 7, "offsets": {"<topic>": {"<partition>": <next offset>}}}]}

Invariant: an entry is written only after every store was committed under its number.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pykstreams.core.errors import DiskFullError, ProcessorStateError
from pykstreams.core.ids import TopicPartition
from pykstreams.state.directory.disk_room import is_full

_VERSION: Final = 1
_KEPT: Final = 256
"""Commits that are remembered; RocksDB keeps fewer of them in memory only."""


class GlobalCheckpoint:
    """The file of one folder of global stores."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "checkpoint.json"
        self._commits: list[tuple[int, dict[TopicPartition, int]]] = []

    def load(self) -> bool:
        """Reads the file; false when there is none that can be used."""
        self._commits = []
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            if found["version"] != _VERSION:
                return False
            self._commits = [
                (
                    int(entry["number"]),
                    {
                        TopicPartition(topic, int(number)): int(offset)
                        for topic, partitions in entry["offsets"].items()
                        for number, offset in partitions.items()
                    },
                )
                for entry in found["commits"]
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False
        return bool(self._commits)

    @property
    def last(self) -> int:
        """The highest number there is, 0 without one."""
        return max((number for number, _ in self._commits), default=0)

    def offsets(self, topic: str, number: int | None) -> dict[TopicPartition, int] | None:
        """Where to go on with a topic whose store was last durable under a number; ``None`` when that is not known.

        It is not for a store that another topic fed before, either.
        """
        known = [commit for commit in self._commits if number is not None and commit[0] <= number]
        if not known:
            return None
        newest = max(known, key=lambda commit: commit[0])[1]
        return {place: offset for place, offset in newest.items() if place.topic == topic} or None

    def add(self, number: int, offsets: Mapping[TopicPartition, int]) -> None:
        """Writes down what a commit stood for."""
        self._commits = [*self._commits, (number, dict(offsets))][-_KEPT:]
        commits = []
        for entry, places in self._commits:
            by_topic: dict[str, dict[str, int]] = {}
            for place, offset in places.items():
                by_topic.setdefault(place.topic, {})[str(place.partition)] = offset
            commits.append({"number": entry, "offsets": by_topic})
        written = self._path.with_suffix(".new")
        try:
            with written.open("w", encoding="utf-8") as file:
                json.dump({"version": _VERSION, "commits": commits}, file)
                file.flush()
                os.fsync(file.fileno())
            written.replace(self._path)
        except OSError as error:
            if is_full(error):
                folder = str(self._path.parent)
                raise DiskFullError(f"{str(self._path)!r} cannot be written: {error}", folder=folder) from error
            raise ProcessorStateError(
                f"{str(self._path)!r} cannot be written: {error}; look at the disk (space, permissions)"
            ) from error
