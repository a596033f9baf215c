"""Shows how restoring goes: a bar on a terminal, a line in the log now and then elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.restore.restore import StateRestoreListener

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

log = logging.getLogger(__name__)

_LOG_EVERY_S = 10.0
_WORTH_SHOWING = 10_000
"""Changelogs with fewer offsets to go are restored before anybody could read a bar."""


def restore_progress(clock: Clock) -> StateRestoreListener:
    """Returns the listener that fits where the program runs."""
    return ProgressBar() if sys.stderr.isatty() else ProgressLog(clock)


class ProgressLog(StateRestoreListener):
    """A line at most every ten seconds, with all changelogs together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: dict[TopicPartition, tuple[int, int]] = {}
        self._total = 0
        self._since = self._next = 0.0

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        if not self._left:
            self._since = self._clock.monotonic()
            self._next = self._since + _LOG_EVERY_S
            self._total = 0
        self._left[topic_partition] = (starting_offset, ending_offset)

    def on_batch_restored(
        self, topic_partition: TopicPartition, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        self._total += num_restored
        end = self._left[topic_partition][1]
        self._left[topic_partition] = (batch_end_offset + 1, end)
        now = self._clock.monotonic()
        if now < self._next:
            return
        self._next = now + _LOG_EVERY_S
        left = sum(end - position for position, end in self._left.values())
        log.info(
            "restoring %s changelog partitions: %s records so far, %s a second, %s offsets to go",
            len(self._left),
            self._total,
            int(self._total / (now - self._since)),
            left,
        )

    def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self._left.pop(topic_partition, None)

    def on_restore_suspended(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self._left.pop(topic_partition, None)


class ProgressBar(StateRestoreListener):
    """One bar for each changelog partition, gone when all are restored."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._bars: dict[TopicPartition, TaskID] = {}

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        if ending_offset - starting_offset < _WORTH_SHOWING:
            return
        if self._progress is None:
            self._progress = _new_progress()
            self._progress.start()
        self._bars[topic_partition] = self._progress.add_task(
            f"restoring {topic_partition}", total=ending_offset - starting_offset
        )

    def on_batch_restored(
        self, topic_partition: TopicPartition, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        if self._progress is not None and topic_partition in self._bars:
            self._progress.advance(self._bars[topic_partition], num_restored)

    def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self._remove(topic_partition)

    def on_restore_suspended(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self._remove(topic_partition)

    def _remove(self, topic_partition: TopicPartition) -> None:
        bar = self._bars.pop(topic_partition, None)
        if self._progress is None or bar is None:
            return
        self._progress.remove_task(bar)
        if not self._bars:
            self._progress.stop()
            self._progress = None


def _new_progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
