"""The parts of a picture: topics, steps, stores, links, the legend. Each returns its piece of SVG.

Invariant: names are escaped here, and only here.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape, quoteattr

from pykstreams.topology.drawings.drawing import Item, Shape
from pykstreams.topology.drawings.layered import Point, Size

_CHARACTER = 7.3
_LINE = 16.0
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not know."""
_WRAP = 22
PADDING: Mapping[Shape, Size] = {
    "processor": Size(14, 10),
    "store": Size(14, 16),
    "topic": Size(22, 10),
    "internal": Size(22, 10),
    "dynamic": Size(22, 10),
}
_LEGEND: Sequence[tuple[Shape, str]] = (
    ("topic", "topic"),
    ("internal", "topic of the application's own"),
    ("dynamic", "topics by pattern or per record"),
    ("processor", "step"),
    ("store", "state store"),
)

STYLE = """
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
text { fill: #1f2a37; text-anchor: middle }
.paper { fill: #ffffff }
.panel rect { fill: #f4f7fb; stroke: #c5d1e0 }
.panel text { font: 600 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #51627a; text-anchor: start }
.processor .shape { fill: #ffffff; stroke: #4f77b5; stroke-width: 1.4 }
.store .shape { fill: #e4f4e9; stroke: #3f8f5f; stroke-width: 1.4 }
.topic .shape { fill: #ffe9b8; stroke: #b97a0b; stroke-width: 1.6 }
.internal .shape { fill: #f0ecfa; stroke: #7c68b4; stroke-width: 1.4; stroke-dasharray: 5 3 }
.dynamic .shape { fill: #ffffff; stroke: #b97a0b; stroke-width: 1.6; stroke-dasharray: 1.5 3.5; stroke-linecap: round }
.dynamic text { font-style: italic }
.detail { font-size: 11px; fill: #51627a }
.link { fill: none; stroke: #6b7a8d; stroke-width: 1.3 }
.state { stroke: #3f8f5f }
.looked-up { stroke-dasharray: 6 3 }
.tip { fill: #6b7a8d }
.state-tip { fill: #3f8f5f }
.legend text { font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #51627a; text-anchor: start }
"""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An item with its lines of text, those of its name first, and the space it takes."""

    item: Item
    name_lines: tuple[str, ...]
    detail_lines: tuple[str, ...]
    size: Size


def drawn_item(item: Item) -> Drawn:
    item = replace(item, label=_legal(item.label), details=tuple(map(_legal, item.details)))
    name, details = tuple(_wrapped(item.label)), tuple(line for text in item.details for line in _wrapped(text))
    padding = PADDING[item.shape]
    width = max(map(_columns, (*name, *details))) * _CHARACTER + 2 * padding.width
    return Drawn(item, name, details, Size(width, (len(name) + len(details)) * _LINE + 2 * padding.height))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)


def _wrapped(label: str) -> list[str]:
    """Breaks long names behind hyphens and their like, and anywhere where there are none for long."""
    lines = [""]
    for part in re.findall(rf"[^-._ ]{{1,{_WRAP}}}[-._ ]*|[-._ ]+", label) or [label]:
        if lines[-1] and len(lines[-1]) + len(part) > _WRAP:
            lines.append("")
        lines[-1] += part
    return lines


def _columns(text: str) -> int:
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def item_text(drawn: Drawn, middle: Point, number: int) -> str:
    x, y = middle
    texts = [*(("", line) for line in drawn.name_lines), *((' class="detail"', line) for line in drawn.detail_lines)]
    first = y - (len(texts) - 1) * _LINE / 2 + 4 + (3 if drawn.item.shape == "store" else 0)
    lines = "".join(
        f'<text{style} x="{px(x)}" y="{px(first + i * _LINE)}">{escape(line)}</text>'
        for i, (style, line) in enumerate(texts)
    )
    shape = shape_of(drawn.item.shape, x, y, drawn.size)
    return (
        f'<g class="{drawn.item.shape}" data-item="{number}" data-name={quoteattr(drawn.item.label)}>'
        f"<title>{escape(chr(10).join((drawn.item.label, *drawn.item.details)))}</title>{shape}{lines}</g>"
    )


def shape_of(shape: Shape, x: float, y: float, size: Size) -> str:
    left, top = x - size.width / 2, y - size.height / 2
    if shape == "store":
        right, bottom, bow = left + size.width, top + size.height, 6.0
        upper = f"A{px(size.width / 2)} {px(bow)} 0 0 1 {px(right)} {px(top + bow)}"
        lower = f"A{px(size.width / 2)} {px(bow)} 0 0 1 {px(left)} {px(bottom - bow)}"
        rim = f"A{px(size.width / 2)} {px(bow)} 0 0 0 {px(right)} {px(top + bow)}"
        start = f"M{px(left)} {px(top + bow)}"
        return f'<path class="shape" d="{start}{upper}V{px(bottom - bow)}{lower}Z{start}{rim}"/>'
    radius = 6.0 if shape == "processor" else size.height / 2
    return (
        f'<rect class="shape" x="{px(left)}" y="{px(top)}" width="{px(size.width)}" height="{px(size.height)}" '
        f'rx="{px(min(radius, 18.0))}"/>'
    )


def path_of(route: Sequence[Point]) -> str:
    """Straight where the way goes straight, curves between layers, turns where it comes back."""
    route = [point for i, point in enumerate(route) if i == 0 or math.dist(point, route[i - 1]) > 0.5]
    text = [f"M{px(route[0][0])} {px(route[0][1])}"]
    half = len(route) / 2
    for i, ((x0, y0), (x1, y1)) in enumerate(itertools.pairwise(route)):
        if abs(x0 - x1) < 0.5 or (abs(y0 - y1) < 0.5 and len(route) == 2):
            text.append(f"L{px(x1)} {px(y1)}")
        elif abs(y0 - y1) < 0.5:
            bow = y0 + (34 if i < half else -34)
            text.append(f"C{px(x0)} {px(bow)} {px(x1)} {px(bow)} {px(x1)} {px(y1)}")
        else:
            middle = (y0 + y1) / 2
            text.append(f"C{px(x0)} {px(middle)} {px(x1)} {px(middle)} {px(x1)} {px(y1)}")
    return "".join(text)


def tip(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path class="{name}" d="M0 0.8 8 4 0 7.2Z"/></marker>'
    )


def legend() -> tuple[str, Size]:
    parts, x = [], 0.0
    for shape, text in _LEGEND:
        size = Size(34, 22)
        parts.append(f'<g class="{shape}">{shape_of(shape, x + size.width / 2, size.height / 2, size)}</g>')
        parts.append(f'<text x="{px(x + size.width + 8)}" y="{px(size.height / 2 + 4)}">{escape(text)}</text>')
        x += size.width + 8 + len(text) * 6.4 + 22
    return "".join(parts), Size(x, 22)


def px(value: float) -> str:
    """A coordinate with one digit behind the point, and none where it would be 0."""
    return f"{value:.1f}".removesuffix(".0")
