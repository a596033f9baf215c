"""Who was silent for too long: the gaps between results, less the outages that explain them.

Invariant: times are those of the wall clock, so that they can be found in logs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

ALLOWED_S = 15.0
"""So long results may stay away without an outage, and after one."""

EVERYBODY = ""
"""The scope of an outage of brokers."""

Place: TypeAlias = tuple[str, str, int]
"""Application, output and partition."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which an application, or everybody, cannot be expected to go on."""

    scope: str
    start: float
    end: float
    why: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a partition of an output got nothing, although there was input for it."""

    place: Place
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Silence:
    """A gap that no outage explains."""

    gap: Gap
    allowed_until: float
    after: Outage | None
    """The last outage that explains a part of it."""
    within: tuple[Outage, ...] = ()
    """Those that began when it was too long already: they explain nothing, and may have made it longer."""

    @property
    def too_long_s(self) -> float:
        return self.gap.end - self.allowed_until


class Outages:
    """Notes outages while they happen; several threads may."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._noted: list[Outage] = []

    def note(self, scope: str, start: float, end: float, why: str) -> None:
        with self._lock:
            self._noted.append(Outage(scope, start, end, why))

    @contextmanager
    def during(self, scope: str, why: str) -> Iterator[None]:
        """An outage for the length of a block."""
        start = self._now()
        try:
            yield
        finally:
            self.note(scope, start, self._now(), why)

    def of(self, application: str) -> list[Outage]:
        """Those that concern an application, ordered by start."""
        with self._lock:
            found = [outage for outage in self._noted if outage.scope in (EVERYBODY, application)]
        return sorted(found, key=lambda outage: outage.start)


class Gaps:
    """Finds gaps: input that is there begins one, a result ends it; several threads may tell."""

    def __init__(self, shortest_s: float = ALLOWED_S) -> None:
        self._shortest_s = shortest_s
        self._lock = threading.Lock()
        self._owed_since: dict[Place, float] = {}
        self._longest: dict[str, float] = {}
        self.found: list[Gap] = []

    def input(self, places: Iterable[Place], now: float) -> None:
        """There is something to do for these."""
        with self._lock:
            for place in places:
                self._owed_since.setdefault(place, now)

    def result(self, place: Place, now: float) -> None:
        with self._lock:
            since = self._owed_since.pop(place, now)
            self._longest[place[0]] = max(self._longest.get(place[0], 0.0), now - since)
            if now - since > self._shortest_s:
                self.found.append(Gap(place, since, now))

    def end(self, application: str, now: float) -> None:
        """Ends the gaps of an application that has not finished, and so had something to do all the time."""
        with self._lock:
            owed = [place for place in self._owed_since if place[0] == application]
        for place in owed:
            self.result(place, now)

    def longest(self, application: str) -> float:
        """The longest gap of an application, in seconds, whatever explains it."""
        return self._longest.get(application, 0.0)


def unexplained(gap: Gap, outages: Sequence[Outage], allowed_s: float = ALLOWED_S) -> Silence | None:
    """The silence in a gap, if it lasts longer than outages explain, each of them and ``allowed_s`` after it.

    :param outages: those that concern the application, ordered by start.
    """
    until, last = gap.start + allowed_s, None
    for outage in outages:
        if outage.start <= until and outage.end + allowed_s > until:
            until, last = outage.end + allowed_s, outage
    if gap.end <= until:
        return None
    return Silence(gap, until, last, tuple(outage for outage in outages if until < outage.start < gap.end))


def silences(gaps: Iterable[Gap], outages: Sequence[Outage], allowed_s: float = ALLOWED_S) -> list[list[Silence]]:
    """The silences in gaps of one application, those that overlap together, the longest of these first."""
    found = filter(None, (unexplained(gap, outages, allowed_s) for gap in gaps))
    together: list[list[Silence]] = []
    until = 0.0
    for silence in sorted(found, key=lambda one: one.allowed_until):
        if silence.allowed_until < until:
            together[-1].append(silence)
        else:
            together.append([silence])
        until = max(until, silence.gap.end)
    return [sorted(group, key=lambda one: -one.too_long_s) for group in together]
