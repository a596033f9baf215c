"""Identifiers: topic partitions and tasks; how they are parsed, written and ordered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pykstreams.core.errors import TaskIdFormatError


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, order=True, slots=True)
class TaskId:
    """A task: one partition number of one sub-topology; its text is ``<subtopology>_<partition>``."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Reads ``"1_3"``; raises ``TaskIdFormatError`` for anything else.

        >>> TaskId.parse("1_3")
        TaskId(subtopology=1, partition=3)
        """
        left, _, right = text.partition("_")
        if not (left.isdecimal() and right.isdecimal()):
            raise TaskIdFormatError(f"task id is {text!r}; expected <subtopology>_<partition>, such as '0_3'")
        return cls(int(left), int(right))
