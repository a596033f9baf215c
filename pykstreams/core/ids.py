"""Identifiers: topic partitions and tasks."""

from __future__ import annotations

from typing import NamedTuple

from pykstreams.core.task_id import TaskId as TaskId


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
