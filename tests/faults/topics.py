"""The topics of a run: what is fed in, and what each application makes of it."""

from __future__ import annotations

from enum import StrEnum

PARTITIONS = 4
LINES = "lines"
"""Key: one of a few; value: ``number|group``, where numbers count up for each key."""
NOTES = "notes"
"""Key: a group; value: a long, which counts up for each group."""
ANSWERS = "answers"
"""Key: one of those of lines; value: a number that counts up for each key. Most belong to a line of the same time."""
RATES = "rates"
"""Key: one of those of lines; value: a number that counts up for each key."""
INPUTS = (LINES, NOTES, ANSWERS, RATES)

WINDOW_MS = 10_000
NEAR_MS = 400
"""A line and an answer of its key are a pair when they are no farther apart."""
GRACE_MS = 120_000
"""So long lines without an answer wait for one, and for the rates of their time: longer than brokers are away."""

POISON = "poison"
"""What the value of a line begins with that cannot be processed; the one of a note cannot be read."""


class Output(StrEnum):
    """The results of applications; those with a store have a changelog, too."""

    MAPPED = "mapped"
    COUNTS = "counts"
    WINDOWS = "windows"
    MERGED = "merged"
    PAIRS = "pairs"
    LINKED = "linked"
    RATED = "rated"

    @property
    def store(self) -> str:
        return f"{self.value}-store"

    def topic(self, application: str) -> str:
        return f"{application}-{self.value}"

    def changelog(self, application: str) -> str:
        return f"{application}-{self.store}-changelog"


COUNTED = (Output.COUNTS, Output.WINDOWS, Output.MERGED)
"""Those whose values are counts, from one on."""


def number_of(output: Output, value: bytes) -> int:
    """How far a result has come: a count, the number of a line, or for ``linked`` that of the line and the note."""
    if output in COUNTED:
        return int.from_bytes(value, "big")
    number = value.partition(b"|")[0]
    if output is Output.LINKED:
        return link_rank(int(number), int(value.rpartition(b"+")[2]))
    return int(number) if number.isdigit() else 0


def link_rank(line: int, note: int) -> int:
    """One number for a line and a note that are linked, which rises with each result of a key."""
    return line * 1_000_000 + note


def dead_letters(application: str) -> str:
    """The topic to which an application sends what it cannot read or process."""
    return f"{application}-dead-letters"


def group_of(line: str) -> str:
    """The group of a line."""
    return line.partition("|")[2]


def window_of(key: str, timestamp: int) -> str:
    """The key under which a line is counted in ``windows``."""
    return f"{key}@{timestamp // WINDOW_MS * WINDOW_MS}"


def checked(line: str) -> str:
    """Gives back a line; the error of a poisoned one is for the handler of the application."""
    if line.startswith(POISON):
        raise ValueError(f"a poisoned line: {line!r}")
    return line
