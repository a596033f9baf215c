"""The programs of the applications: the script of each, what it reads, and what it writes."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.topics import ANSWERS, LINES, NOTES, RATES, Output


@dataclass(frozen=True, slots=True)
class Program:
    """A topology, written in each of the languages."""

    name: str
    """What a worker of Java is told."""
    script: str
    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]


COUNTING = Program(
    "counting", "counting_application.py", (LINES, NOTES), (Output.MAPPED, Output.COUNTS, Output.WINDOWS, Output.MERGED)
)
JOINING = Program(
    "joining", "joining_application.py", (LINES, NOTES, ANSWERS, RATES), (Output.PAIRS, Output.LINKED, Output.RATED)
)
