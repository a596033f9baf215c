"""How much memory each worker has over the time of a run: samples, a table of them, and a picture."""

from __future__ import annotations

import contextlib
import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

EVERY_S = 5.0
_WARM_S = 180.0
"""So old must a process be to count for the slope: before, it imports, restores, and fills the buffers of joins."""

_SPAN_S = 60.0
"""So long it must then live on."""

_HOUR_S = 3600.0
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """The resident set of a process at a time of the run."""

    at_s: float
    worker: str
    process: int
    rss_bytes: int


class Memory:
    """Samples of all workers, taken when ``look`` is called often enough."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._next_s = 0.0

    def look(self, at_s: float, processes: Mapping[int, str]) -> None:
        """Takes samples if it is time to.

        :param processes: the names of workers, by process id.
        """
        if at_s < self._next_s:
            return
        self._next_s = at_s + EVERY_S
        for process, name in processes.items():
            size = rss_bytes(process)
            if size:
                self.samples.append(Sample(at_s, name, process, size))

    def write(self, folder: Path) -> None:
        """Writes ``memory.csv`` and ``memory.svg``."""
        with (folder / "memory.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["at_s", "worker", "process", "rss_bytes"])
            rows.writerows((f"{one.at_s:.1f}", one.worker, one.process, one.rss_bytes) for one in self.samples)
        (folder / "memory.svg").write_text(picture(self.samples))

    def of(self, workers: Iterable[str]) -> tuple[float, float | None]:
        """The most that one of them had, in MB, and how fast they grow, in MB an hour."""
        wanted = set(workers)
        found = [one for one in self.samples if one.worker in wanted]
        most = max((one.rss_bytes for one in found), default=0) / _MB
        return most, slope_mb_per_hour(found)


def rss_bytes(process: int) -> int:
    """The resident set of a process, 0 when there is none, or no ``/proc``."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def slope_mb_per_hour(samples: Sequence[Sample]) -> float | None:
    """How fast processes grow: one slope for all, a level for each of them, by least squares.

    A process counts from three minutes after its first sample on; ``None`` when none lived for four.
    """
    lives: defaultdict[int, list[Sample]] = defaultdict(list)
    for one in samples:
        lives[one.process].append(one)
    along = spread = 0.0
    for life in lives.values():
        warm = [one for one in life if one.at_s >= life[0].at_s + _WARM_S]
        if not warm or warm[-1].at_s - warm[0].at_s < _SPAN_S:
            continue
        middle_s = sum(one.at_s for one in warm) / len(warm)
        level = sum(one.rss_bytes for one in warm) / len(warm)
        along += sum((one.at_s - middle_s) * (one.rss_bytes - level) for one in warm)
        spread += sum((one.at_s - middle_s) ** 2 for one in warm)
    return along / spread / _MB * _HOUR_S if spread else None


_COLOURS = ("#1b6ca8", "#c0392b", "#27864a", "#8e44ad", "#b9770e", "#117a65", "#5d6d7e", "#a04000")
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 960, 400, 60, 190, 20, 40
_STEPS = 4


def picture(samples: Sequence[Sample]) -> str:
    """A line for each life of a worker, in SVG: minutes to the right, MB upwards, from nothing on."""
    last_s = max((one.at_s for one in samples), default=1.0)
    most = max((one.rss_bytes for one in samples), default=_MB)
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(at_s: float) -> float:
        return _LEFT + wide * at_s / last_s

    def y(size: float) -> float:
        return _TOP + high * (1 - size / most)

    workers = sorted({one.worker for one in samples})
    colours = {worker: _COLOURS[number % len(_COLOURS)] for number, worker in enumerate(workers)}
    font = 'font-family="sans-serif" font-size="11"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {font}>']
    for step in range(_STEPS + 1):
        size, at_s = most * step / _STEPS, last_s * step / _STEPS
        parts.append(f'<path d="M{_LEFT} {y(size):.1f}h{wide}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(size) + 4:.1f}" text-anchor="end">{size / _MB:.0f} MB</text>')
        parts.append(f'<text x="{x(at_s):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{at_s / 60:.1f} min</text>')
    lives: dict[tuple[str, int], list[Sample]] = {}
    for one in samples:
        lives.setdefault((one.worker, one.process), []).append(one)
    for (worker, _), life in lives.items():
        points = " ".join(f"{x(one.at_s):.1f},{y(one.rss_bytes):.1f}" for one in life)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colours[worker]}"/>')
    for number, worker in enumerate(workers):
        place = _TOP + 8 + 14 * number
        parts.append(f'<text x="{_LEFT + wide + 10}" y="{place}" fill="{colours[worker]}">{escape(worker)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
