"""The topics of a run: what is fed in, and what each application makes of it."""

from __future__ import annotations

from enum import StrEnum

PARTITIONS = 4
LINES = "lines"
"""Key: one of a few; value: ``number|group``, where numbers count up for each key."""
NOTES = "notes"
"""Key: a group."""
WINDOW_MS = 10_000


class Output(StrEnum):
    """The results of an application; those with a store have a changelog, too."""

    MAPPED = "mapped"
    COUNTS = "counts"
    WINDOWS = "windows"
    MERGED = "merged"

    @property
    def store(self) -> str:
        return f"{self.value}-store"

    def topic(self, application: str) -> str:
        return f"{application}-{self.value}"

    def changelog(self, application: str) -> str:
        return f"{application}-{self.store}-changelog"


def group_of(line: str) -> str:
    """The group of a line."""
    return line.partition("|")[2]


def window_of(key: str, timestamp: int) -> str:
    """The key under which a line is counted in ``windows``."""
    return f"{key}@{timestamp // WINDOW_MS * WINDOW_MS}"
