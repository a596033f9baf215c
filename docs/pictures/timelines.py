"""Draws timelines: lanes above an axis of time, with rows that are valid for a while and records that happen at once.

Invariant: what comes out is well-formed XML that needs nothing from elsewhere, and depends on the timeline alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from pykstreams.topology.drawings.shapes import px

Look = Literal["row", "joined", "wrong", "expired", "record", "late", "dropped"]

_WIDTH, _RIGHT, _TOP, _BOTTOM = 760.0, 26.0, 14.0, 44.0
_HEIGHT, _GAP, _HEADER = 26.0, 12.0, 26.0
_CHARACTER, _PADDING, _SMALL_CHARACTER, _BOLD_CHARACTER = 6.9, 9.0, 5.9, 7.5
_STYLE = """
text { font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2a37 }
.paper { fill: #ffffff }
.title { fill: #51627a; font-weight: 600; text-anchor: end }
.inside { text-anchor: middle }
.note { font-size: 11px; fill: #51627a; paint-order: stroke; stroke: #ffffff; stroke-width: 4px }
.axis { stroke: #6b7a8d; stroke-width: 1.2; fill: none }
.grid { stroke: #e3e9f1; stroke-width: 1 }
.tick { text-anchor: middle; fill: #51627a; font-size: 11px }
.band { fill: #f0ecfa }
.band-text { fill: #7c68b4; text-anchor: middle; font-weight: 600 }
.now { stroke: #4f77b5; stroke-width: 1.8; fill: none; stroke-dasharray: 5 3 }
.now-text { fill: #4f77b5; font-weight: 600; text-anchor: middle }
.link { stroke: #6b7a8d; stroke-width: 1.3; fill: none }
.tip { fill: #6b7a8d }
.row { fill: #e4f4e9; stroke: #3f8f5f; stroke-width: 1.4 }
.joined { fill: #eaf1fb; stroke: #4f77b5; stroke-width: 1.4 }
.wrong { fill: #fde8e4; stroke: #b3372f; stroke-width: 1.4 }
.expired { fill: #ffffff; stroke: #9aa5b4; stroke-width: 1.2; stroke-dasharray: 4 3 }
.record { fill: #ffe9b8; stroke: #b97a0b; stroke-width: 1.4 }
.late { fill: #ffd9b0; stroke: #c2500a; stroke-width: 2 }
.dropped { fill: #ffffff; stroke: #b3372f; stroke-width: 1.4; stroke-dasharray: 4 3 }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """What is valid from ``start`` up to, and without, ``end``; ``None`` for no end."""

    start: float
    end: float | None
    text: str
    look: Look = "row"


@dataclass(frozen=True, slots=True)
class Chip:
    """A record, at its time; the note stands beside it."""

    time: float
    text: str
    look: Look = "record"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    title: str
    items: Sequence[Bar | Chip]


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow between two lanes, each given by its number and a time in it."""

    lane: int
    time: float
    to_lane: int
    to_time: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """A picture. Times are in the unit of the axis, which goes from 0 to ``last`` with a number at each ``step``.

    :param label: what the picture shows, for those who cannot see it.
    :param band: (from, to, text) of a time that is shaded.
    :param now: (text, time for each lane): a line that goes down from lane to lane.
    """

    label: str
    lanes: Sequence[Lane]
    last: float
    step: float = 1
    axis: str = "time (minutes)"
    band: tuple[float, float, str] | None = None
    now: tuple[str, Sequence[float]] | None = None
    links: Sequence[Link] = ()

    def svg(self) -> str:
        """The picture as a text that any browser shows."""
        drawing = _Drawing(self)
        return "\n".join(drawing.lines()) + "\n"


class _Drawing:
    def __init__(self, timeline: Timeline) -> None:
        self._of = timeline
        self._left = 24 + max(len(lane.title) for lane in timeline.lanes) * _BOLD_CHARACTER
        self._top = _TOP + (_HEADER if timeline.band or timeline.now else 0)
        self._floor = self._top + len(timeline.lanes) * (_HEIGHT + _GAP)

    def lines(self) -> list[str]:
        of, height = self._of, self._floor + _BOTTOM
        lanes = list(enumerate(of.lanes))
        return [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {px(_WIDTH)} {px(height)}" width="{px(_WIDTH)}" '
            f'height="{px(height)}" role="img" aria-label={quoteattr(of.label)}>',
            f"<style>{_STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path class="tip" d="M0 0.8 8 4 0 7.2Z"/></marker></defs>',
            f'<rect class="paper" width="{px(_WIDTH)}" height="{px(height)}"/>',
            *self._band(),
            *self._axis(),
            *self._now(),
            *(self._title(lane.title, i) for i, lane in lanes),
            *(self._item(item, i) for i, lane in lanes for item in lane.items if isinstance(item, Bar)),
            *(self._link(link) for link in of.links),
            *(self._item(item, i) for i, lane in lanes for item in lane.items if isinstance(item, Chip)),
            "</svg>",
        ]

    def _x(self, time: float) -> float:
        return self._left + (_WIDTH - _RIGHT - self._left) * time / self._of.last

    def _y(self, lane: int) -> float:
        """The middle of a lane."""
        return self._top + lane * (_HEIGHT + _GAP) + _HEIGHT / 2

    def _axis(self) -> list[str]:
        of, y = self._of, self._floor + 4
        lines = []
        time = 0.0
        while time <= of.last:
            x = px(self._x(time))
            lines.append(f'<path class="grid" d="M{x} {px(self._top - 6)}V{px(y)}"/>')
            lines.append(f'<text class="tick" x="{x}" y="{px(y + 15)}">{time:g}</text>')
            time += of.step
        lines.append(f'<path class="axis" d="M{px(self._left)} {px(y)}H{px(_WIDTH - _RIGHT + 8)}"/>')
        lines.append(f'<text class="tick" x="{px(self._x(of.last / 2))}" y="{px(y + 32)}">{escape(of.axis)}</text>')
        return lines

    def _band(self) -> list[str]:
        if self._of.band is None:
            return []
        start, end, text = self._of.band
        x, width = self._x(start), self._x(end) - self._x(start)
        return [
            f'<rect class="band" x="{px(x)}" y="{px(_TOP - 4)}" width="{px(width)}" '
            f'height="{px(self._floor + 8 - _TOP)}"/>',
            f'<text class="band-text" x="{px(x + width / 2)}" y="{px(_TOP + 12)}">{escape(text)}</text>',
        ]

    def _now(self) -> list[str]:
        if self._of.now is None:
            return []
        text, times = self._of.now
        half = (_HEIGHT + _GAP) / 2
        way = f"M{px(self._x(times[0]))} {px(self._top - 4)}"
        for lane, time in enumerate(times):
            way += f"H{px(self._x(time))}V{px(self._y(lane) + half)}"
        beside = (
            self._of.band is not None and self._of.band[1] == times[0]
        )  # where the text of the band has no room left
        shift, anchor = (8.0, "start") if beside else (0.0, "middle")
        return [
            f'<path class="now" d="{way}"/>',
            f'<text class="now-text" x="{px(self._x(times[0]) + shift)}" y="{px(_TOP + 12)}" '
            f'style="text-anchor: {anchor}">{escape(text)}</text>',
        ]

    def _title(self, title: str, lane: int) -> str:
        return f'<text class="title" x="{px(self._left - 14)}" y="{px(self._y(lane) + 4)}">{escape(title)}</text>'

    def _item(self, item: Bar | Chip, lane: int) -> str:
        y = self._y(lane)
        if isinstance(item, Chip):
            width = len(item.text) * _CHARACTER + 2 * _PADDING
            return self._box(self._x(item.time) - width / 2, width, y, item, radius=_HEIGHT / 2)
        start = self._x(item.start)
        end = _WIDTH - _RIGHT if item.end is None else self._x(item.end)
        return self._box(start, end - start, y, item, radius=3, open_end=item.end is None)

    def _box(self, left: float, width: float, y: float, item: Bar | Chip, radius: float, open_end: bool = False) -> str:
        top = y - _HEIGHT / 2
        shape = (
            f'<rect class="{item.look}" x="{px(left)}" y="{px(top)}" width="{px(width)}" height="{px(_HEIGHT)}" '
            f'rx="{px(radius)}"/>'
        )
        if open_end:  # a tip to the right: it goes on
            right, back = left + width + 8, left + width - 2
            shape = (
                f'<path class="{item.look}" d="M{px(left)} {px(top)}H{px(back)}L{px(right)} {px(y)}L{px(back)} '
                f'{px(top + _HEIGHT)}H{px(left)}Z"/>'
            )
        text = f'<text class="inside" x="{px(left + width / 2)}" y="{px(y + 4)}">{escape(item.text)}</text>'
        if isinstance(item, Chip) and item.note:
            x = left + width + 7
            if x + len(item.note) * _SMALL_CHARACTER > _WIDTH:  # no room to the right
                x = left - 7 - len(item.note) * _SMALL_CHARACTER
            text += f'<text class="note" x="{px(x)}" y="{px(y + 4)}">{escape(item.note)}</text>'
        return shape + text

    def _link(self, link: Link) -> str:
        down = 1 if link.to_lane > link.lane else -1
        start = self._y(link.lane) + down * _HEIGHT / 2
        end = self._y(link.to_lane) - down * (_HEIGHT / 2 + 1)
        return (
            f'<path class="link" marker-end="url(#tip)" d="M{px(self._x(link.time))} {px(start)}'
            f'L{px(self._x(link.to_time))} {px(end)}"/>'
        )
