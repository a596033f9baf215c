"""From lines of progress to figures.

Two windows over the points of a run, each of which is a commit: CPU time is taken from the first commit of the second
half (the JVM has warmed up by then) to the last one; the rate ends one commit earlier when it can, because the last
commit waits for its interval after the records have run out. Restoring is taken whole: nobody warms up before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

_SHORTEST = 0.15
"""The part of all records that a window for the rate must hold at least."""


@dataclass(frozen=True, slots=True)
class Point:
    """So many records were done with at this time, and at this CPU time of the process."""

    records: int
    wall_ns: int
    cpu_ns: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run showed."""

    records_per_second: float
    cpu_seconds_per_million: float
    peak_mb: float | None
    output_records: int
    reads_per_record: float | None = None
    """Reads of stores, from a run of its own in which they were counted."""
    threads: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds per million records of the whole run, its start included, by the name of the thread."""


def measure(points: Sequence[Point], *, whole: bool) -> tuple[float, float]:
    """Gives (records per second, CPU seconds per million records) of a complete run.

    >>> second = 1_000_000_000
    >>> points = [Point(400_000 * n, n * second, n * second // 2) for n in (1, 2, 3, 4)]
    >>> points.append(Point(1_700_000, 5 * second, 2_125_000_000))
    >>> measure(points, whole=False)
    (400000.0, 1.25)
    """
    last = points[-1]
    first = points[0] if whole else next(point for point in points if 2 * point.records >= last.records)
    if first is last:
        # too short a run for halves: take what there is, start-up included
        first = next((point for point in reversed(points[:-1]) if point.records < last.records), points[0])
    until = last
    if not whole:
        busy = [point for point in points if point.records < last.records]
        if busy and busy[-1].records - first.records >= _SHORTEST * last.records:
            until = busy[-1]
    rate = (until.records - first.records) / (until.wall_ns - first.wall_ns) * 1e9
    cpu = (last.cpu_ns - first.cpu_ns) / (last.records - first.records) / 1000
    return rate, cpu


def parts(points: Sequence[Point], records: int) -> tuple[Sequence[Point], Sequence[Point]]:
    """The points of a run up to the one with so many records, from the first that has some, and those from there on.

    >>> load, update = parts([Point(done, 0, 0) for done in (0, 3, 5, 5, 8, 10)], 5)
    >>> [point.records for point in load], [point.records for point in update]
    ([3, 5], [5, 8, 10])
    """
    loaded = [number for number, point in enumerate(points) if point.records == records]
    begun = next(number for number, point in enumerate(points) if point.records > 0)
    return points[min(begun, loaded[0] - 1) : loaded[0] + 1], points[loaded[-1] :]


def middle(values: Iterable[float | None]) -> float | None:
    """The median of what is known."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def ratio(ours: Sequence[Figures], theirs: Sequence[Figures]) -> float | None:
    """How much CPU we take against them: the median over the rounds, whose runs followed each other."""
    return middle(
        one.cpu_seconds_per_million / other.cpu_seconds_per_million for one, other in zip(ours, theirs, strict=False)
    )
