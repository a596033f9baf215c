"""The epochs of a source with several partitions, as lines of progress."""

from __future__ import annotations

from benchmarks.programs.job import Progress, report
from benchmarks.settings import PARTITIONS


class Epochs:
    """Reports an epoch when the next one begins: a source is asked for more when all that it gave is written."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._progress = Progress(topic)
        self._ended: dict[int, int] = {}
        report(0)

    def ended(self, partition: int, offset: int | None) -> None:
        """Takes the end of an epoch of one partition; the offset is none, or below zero, before its first record."""
        self._ended[partition] = max(offset or 0, 0)

    def began(self) -> None:
        """Reports the epoch before, once all partitions have ended it."""
        if len(self._ended) == PARTITIONS:
            self._progress.committed((self._topic, *each) for each in self._ended.items())
            self._ended.clear()
