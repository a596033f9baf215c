"""Draws boxes with arrows between them, some of them in panels: topics, tasks, workers, stores.

Invariant: what comes out is well-formed XML that needs nothing from elsewhere, and depends on the picture alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from pykstreams.topology.drawings.shapes import px

Look = Literal["topic", "internal", "task", "store", "step", "idle"]
Route = Literal["plain", "first", "second", "third", "copied"]

_LINE = 15.0
_CORNER = 5.0
_STYLE = """
text { font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2a37; text-anchor: middle }
.paper { fill: #ffffff }
.panel { fill: #f4f7fb; stroke: #c5d1e0; stroke-width: 1.2 }
.title { fill: #51627a; font-weight: 600; text-anchor: start }
.detail, .note { font-size: 11px; fill: #51627a }
.note { paint-order: stroke; stroke: #ffffff; stroke-width: 4px }
.begins { text-anchor: start }
.topic { fill: #ffe9b8; stroke: #b97a0b; stroke-width: 1.4 }
.internal { fill: #f0ecfa; stroke: #7c68b4; stroke-width: 1.4; stroke-dasharray: 5 3 }
.task, .step { fill: #ffffff; stroke: #4f77b5; stroke-width: 1.4 }
.store { fill: #e4f4e9; stroke: #3f8f5f; stroke-width: 1.4 }
.idle { fill: #ffffff; stroke: #9aa5b4; stroke-width: 1.2; stroke-dasharray: 4 3 }
.link { stroke: #6b7a8d; stroke-width: 1.3; fill: none }
.first { stroke: #c2500a; stroke-width: 1.8 }
.second { stroke: #3f8f5f; stroke-width: 1.8 }
.third { stroke: #4f77b5; stroke-width: 1.8 }
.copied { stroke: #3f8f5f; stroke-dasharray: 6 3 }
.tip { fill: #6b7a8d }
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """What belongs together: a topic, a worker, a machine. Its title stands at its top."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Box:
    """A box with a text in its middle, and smaller lines below that."""

    x: float
    y: float
    width: float
    height: float
    text: str
    look: Look
    details: Sequence[str] = ()

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow from the side of one box to the side of another; the note stands at its middle.

    :param shift: how far the arrow is moved, to the right or down, so that two of them do not lie on each other.
    :param at: where on its way the note stands, from 0 to 1.
    """

    start: Box
    end: Box
    note: str = ""
    route: Route = "plain"
    shift: float = 0.0
    at: float = 0.5


@dataclass(frozen=True, slots=True)
class Note:
    """A line of text that begins at ``x``."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture; ``label`` tells what it shows, for those who cannot see it."""

    label: str
    width: float
    height: float
    panels: Sequence[Panel] = ()
    boxes: Sequence[Box] = ()
    arrows: Sequence[Arrow] = ()
    notes: Sequence[Note] = ()

    def svg(self) -> str:
        """The picture as a text that any browser shows."""
        width, height = px(self.width), px(self.height)
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label={quoteattr(self.label)}>',
            f"<style>{_STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
            'markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0.8 8 4 0 7.2Z"/></marker></defs>',
            f'<rect class="paper" width="{width}" height="{height}"/>',
            *(_panel(panel) for panel in self.panels),
            *(_line(arrow) for arrow in self.arrows),
            *(_box(box) for box in self.boxes),
            *(_beside(arrow) for arrow in self.arrows if arrow.note),
            *(
                f'<text class="note begins" x="{px(note.x)}" y="{px(note.y)}">{escape(note.text)}</text>'
                for note in self.notes
            ),
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _panel(panel: Panel) -> str:
    return (
        f'<rect class="panel" x="{px(panel.x)}" y="{px(panel.y)}" width="{px(panel.width)}" '
        f'height="{px(panel.height)}" rx="10"/>'
        f'<text class="title" x="{px(panel.x + 11)}" y="{px(panel.y + 19)}">{escape(panel.title)}</text>'
    )


def _box(box: Box) -> str:
    x, y = box.middle
    first = y + 4 - len(box.details) * _LINE / 2
    lines = [f'<text x="{px(x)}" y="{px(first)}">{escape(box.text)}</text>']
    for number, detail in enumerate(box.details, start=1):
        lines.append(f'<text class="detail" x="{px(x)}" y="{px(first + number * _LINE)}">{escape(detail)}</text>')
    radius = box.height / 2 if box.look in ("topic", "internal") and not box.details else _CORNER
    return (
        f'<rect class="{box.look}" x="{px(box.x)}" y="{px(box.y)}" width="{px(box.width)}" '
        f'height="{px(box.height)}" rx="{px(radius)}"/>' + "".join(lines)
    )


def _ends(arrow: Arrow) -> tuple[float, float, float, float]:
    """Where an arrow begins and ends: on the sides of its boxes that face each other."""
    (x, y), (to_x, to_y) = arrow.start.middle, arrow.end.middle
    beside = arrow.end.x >= arrow.start.x + arrow.start.width or arrow.start.x >= arrow.end.x + arrow.end.width
    if beside:
        way = 1 if to_x > x else -1
        x += way * arrow.start.width / 2
        to_x -= way * (arrow.end.width / 2 + 1)
        return x, y + arrow.shift, to_x, to_y + arrow.shift
    way = 1 if to_y > y else -1
    y += way * arrow.start.height / 2
    to_y -= way * (arrow.end.height / 2 + 1)
    return x + arrow.shift, y, to_x + arrow.shift, to_y


def _line(arrow: Arrow) -> str:
    x, y, to_x, to_y = _ends(arrow)
    look = "link" if arrow.route == "plain" else f"link {arrow.route}"
    return f'<path class="{look}" marker-end="url(#tip)" d="M{px(x)} {px(y)}L{px(to_x)} {px(to_y)}"/>'


def _beside(arrow: Arrow) -> str:
    x, y, to_x, to_y = _ends(arrow)
    upright = abs(to_y - y) > abs(to_x - x)
    at_x, at_y = x + (to_x - x) * arrow.at, y + (to_y - y) * arrow.at
    if upright:
        return f'<text class="note begins" x="{px(at_x + 8)}" y="{px(at_y + 4)}">{escape(arrow.note)}</text>'
    return f'<text class="note" x="{px(at_x)}" y="{px(at_y - 6)}">{escape(arrow.note)}</text>'
