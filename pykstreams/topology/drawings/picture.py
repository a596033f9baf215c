"""Drawings of a topology as pictures: SVG, and a page of HTML with it that can be moved and enlarged.

Steps flow from top to bottom. Each sub-topology and each global store is a panel that is laid out by itself; panels and
topics are then laid out like the nodes of another graph. Stores stand beside the step that uses them.

Invariant: what comes out is well-formed XML, whatever names a topology has, and needs nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import escape

from pykstreams.topology.drawings.drawing import Edge, PlainDescription, parts_of, titles_of
from pykstreams.topology.drawings.layered import GraphLayout, Link, Point, Size, arrange
from pykstreams.topology.drawings.shapes import PADDING, STYLE, Drawn, drawn_item, item_text, legend, path_of, px, tip

_INNER_GAP, _OUTER_GAP = Size(34, 44), Size(46, 62)
_BESIDE = 30.0
_BETWEEN_STORES = 8.0
_PANEL = Size(22, 20)
_ENTRY = Size(14, 0)
_TITLE = 26.0
_TITLE_LEFT = 14.0
_MARGIN = 28.0
_PAGE_STYLE = """
html, body { margin: 0; height: 100%; overflow: hidden; background: #ffffff }
svg { width: 100vw; height: 100vh; cursor: grab; display: block }
svg.held { cursor: grabbing }
svg.focused .link { opacity: 0.15 }
svg.focused .link.lit { opacity: 1; stroke-width: 2.2 }
"""

_SCRIPT = """
const svg = document.querySelector('svg'), whole = svg.getAttribute('viewBox').split(' ').map(Number);
let view = [...whole], held = null;
const show = () => svg.setAttribute('viewBox', view.join(' '));
const scale = () => Math.max(view[2] / svg.clientWidth, view[3] / svg.clientHeight);
svg.addEventListener('wheel', event => {
  event.preventDefault();
  const factor = Math.exp(Math.sign(event.deltaY) * 0.15), before = scale();
  const x = view[0] + view[2] / 2 + (event.clientX - svg.clientWidth / 2) * before;
  const y = view[1] + view[3] / 2 + (event.clientY - svg.clientHeight / 2) * before;
  view = [x + (view[0] - x) * factor, y + (view[1] - y) * factor, view[2] * factor, view[3] * factor];
  show();
}, { passive: false });
svg.addEventListener('pointerdown', event => {
  held = [event.clientX, event.clientY];
  svg.setPointerCapture(event.pointerId);
  svg.classList.add('held');
});
svg.addEventListener('pointermove', event => {
  if (!held) return;
  view[0] -= (event.clientX - held[0]) * scale();
  view[1] -= (event.clientY - held[1]) * scale();
  held = [event.clientX, event.clientY];
  show();
});
svg.addEventListener('pointerup', () => { held = null; svg.classList.remove('held'); });
svg.addEventListener('dblclick', () => { view = [...whole]; show(); });
for (const item of svg.querySelectorAll('[data-item]')) {
  const links = svg.querySelectorAll(`[data-ends~="${item.dataset.item}"]`);
  item.addEventListener('pointerenter', () => {
    svg.classList.add('focused');
    links.forEach(link => link.classList.add('lit'));
  });
  item.addEventListener('pointerleave', () => {
    svg.classList.remove('focused');
    links.forEach(link => link.classList.remove('lit'));
  });
}
"""


def svg(description: PlainDescription) -> str:
    """A picture that any browser shows."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + _Picture(description).text() + "\n"


def html(description: PlainDescription) -> str:
    """A page of its own.

    Drag to move, turn the wheel to enlarge, double-click to see all of it, point at something to see its links.
    """
    return (
        '<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f"<title>Topology</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n<body>\n{_Picture(description).text()}\n"
        f"<script>//<![CDATA[{_SCRIPT}//]]></script>\n</body>\n</html>\n"
    )


@dataclass(slots=True)
class _Panel:
    """A sub-topology or global store: its items, laid out, with positions that count from its own corner."""

    title: str
    size: Size
    middles: dict[str, Point]
    routes: list[tuple[Edge, Sequence[Point]]]
    entries: dict[Edge, Sequence[Point]]
    """The ways of look-ups from the first layer, which they come in at, to the steps that want them."""


@dataclass(slots=True)
class _Group:
    """A unit of the layout: a step with the stores beside it, or a store that several steps share."""

    size: Size
    middles: dict[str, Point] = field(default_factory=dict)
    """From the middle of the group."""


class _Picture:
    def __init__(self, description: PlainDescription) -> None:
        items, self._edges = parts_of(description)
        self._items = {item.key: drawn_item(item) for item in items}
        self._numbers = {item.key: i for i, item in enumerate(items)}
        self._panels = {
            box: self._panel(title, box) for box, title in titles_of(description).items() if self._in_box(box)
        }
        self._middles: dict[str, Point] = {}
        self._corners: dict[int, Point] = {}
        self._routes: list[tuple[Edge, Sequence[Point]]] = []
        self._size = self._arrange()

    def text(self) -> str:
        meanings, meanings_size = legend()
        width = max(self._size.width, meanings_size.width) + 2 * _MARGIN
        height = self._size.height + meanings_size.height + 3 * _MARGIN
        shift = f"translate({px(_MARGIN + (width - 2 * _MARGIN - self._size.width) / 2)} {px(_MARGIN)})"
        below = f"translate({px(_MARGIN)} {px(self._size.height + 2 * _MARGIN)})"
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {px(width)} {px(height)}" width="{px(width)}" '
            f'height="{px(height)}" role="img" aria-label="Topology">',
            f"<style>{STYLE}</style>",
            f"<defs>{tip('tip')}{tip('state-tip')}</defs>",
            f'<rect class="paper" width="{px(width)}" height="{px(height)}"/>',
            f'<g transform="{shift}">',
            *(self._panel_text(box, panel) for box, panel in self._panels.items()),
            *(self._link_text(edge, route) for edge, route in self._routes),
            *(item_text(drawn, self._middles[key], self._numbers[key]) for key, drawn in self._items.items()),
            "</g>",
            f'<g class="legend" transform="{below}">{meanings}</g>',
            "</svg>",
        ]
        return "\n".join(lines)

    # --- one panel ---

    def _in_box(self, box: int) -> list[Drawn]:
        return [drawn for drawn in self._items.values() if drawn.item.box == box]

    def _panel(self, title: str, box: int) -> _Panel:
        inside = {drawn.item.key: drawn for drawn in self._in_box(box)}
        edges = [edge for edge in self._edges if edge.start in inside and edge.end in inside]
        flow = [edge for edge in edges if not edge.two_way]
        owners = _owners([edge for edge in edges if edge.two_way], _depths(inside, flow))
        groups: dict[str, _Group] = {}
        group_of: dict[str, str] = {}
        for key, drawn in inside.items():
            if drawn.item.shape != "store" or key not in owners:
                beside = [store for store, owner in owners.items() if owner == key]
                column = _column([inside[store] for store in beside])
                self._items[key] = drawn = replace(drawn, size=_at_least(drawn.size, column))
                groups[key] = _group(drawn, [inside[store] for store in beside])
                group_of.update(dict.fromkeys([key, *beside], key))
        outside = [edge for edge in self._edges if (edge.start in inside) != (edge.end in inside)]
        layered = [edge for edge in edges if group_of[edge.start] != group_of[edge.end]]
        links = []
        for edge in layered:
            # the way goes down: a shared store stands beside the first of its steps, and above the others
            start, end = (edge.end, edge.start) if edge.two_way and edge.end in owners else (edge.start, edge.end)
            links.append(self._link(start, end, groups, group_of))
        looked_up = {edge: f"{edge.start} {edge.end}" for edge in outside if edge.is_look_up and edge.end in inside}
        for edge, entry in looked_up.items():
            groups[entry], group_of[entry] = _Group(_ENTRY, {entry: (0.0, 0.0)}), entry
            links.append(self._link(entry, edge.end, groups, group_of))
        layout = arrange(
            {key: group.size for key, group in groups.items()},
            links,
            gap=_INNER_GAP,
            top={group_of[looked_up.get(edge, edge.end)] for edge in outside if edge.end in inside},
            bottom={group_of[edge.start] for edge in outside if edge.start in inside and _is_last(edge.start, flow)},
        )
        return self._placed(title, layout, groups, layered, edges, list(looked_up))

    def _link(self, start: str, end: str, groups: Mapping[str, _Group], group_of: Mapping[str, str]) -> Link:
        above, below = group_of[start], group_of[end]
        return Link(above, below, groups[above].middles[start][0], groups[below].middles[end][0])

    def _placed(
        self,
        title: str,
        layout: GraphLayout,
        groups: Mapping[str, _Group],
        layered: Sequence[Edge],
        edges: Sequence[Edge],
        looked_up: Sequence[Edge],
    ) -> _Panel:
        # wide enough for the title on one side of a link that comes in at the middle
        width = max(layout.size.width + 2 * _PANEL.width, 2 * (_title_width(title) + 2 * _TITLE_LEFT))
        left, top = (width - layout.size.width) / 2, _PANEL.height + _TITLE
        middles = {}
        for key, group in groups.items():
            x, y = layout.middles[key]
            middles.update({item: (x + dx + left, y + dy + top) for item, (dx, dy) in group.middles.items()})
        routes: list[tuple[Edge, Sequence[Point]]] = [
            (edge, _shifted(route, left, top))
            for edge, route in zip((*layered, *looked_up), layout.routes, strict=True)
        ]
        entries = {edge: self._fastened(route, -1, edge.end, edge, middles) for edge, route in routes[len(layered) :]}
        del routes[len(layered) :]
        for i, (edge, route) in enumerate(routes):
            for end, place in ((0, edge.start), (-1, edge.end)):
                routes[i] = (edge, route := self._fastened(route, end, place, edge, middles))
        beside = [edge for edge in edges if edge not in layered]
        for edge in beside:
            (x, y), (store_x, store_y) = middles[edge.start], middles[edge.end]
            right = x + self._items[edge.start].size.width / 2
            routes.append((edge, [(right, store_y), (store_x - self._items[edge.end].size.width / 2, store_y)]))
        return _Panel(title, Size(width, layout.size.height + _PANEL.height + top), middles, routes, entries)

    def _fastened(
        self, route: Sequence[Point], end: int, place: str, edge: Edge, middles: Mapping[str, Point]
    ) -> Sequence[Point]:
        """Lets a route begin or end at the very item, which may be lower than the group it stands in."""
        points = list(route)
        down = end == 0 if not (edge.two_way and self._goes_up(edge, middles)) else end != 0
        half = self._items[place].size.height / 2
        at = 0 if down else -1
        points[at] = (points[at][0], middles[place][1] + (half if down else -half))
        return points

    def _goes_up(self, edge: Edge, middles: Mapping[str, Point]) -> bool:
        return middles[edge.end][1] < middles[edge.start][1]

    # --- all panels ---

    def _arrange(self) -> Size:
        sizes = {f"panel:{box}": panel.size for box, panel in self._panels.items()}
        sizes.update({key: drawn.size for key, drawn in self._items.items() if drawn.item.box is None})
        crossing = [edge for edge in self._edges if self._box(edge.start) != self._box(edge.end)]
        links = [
            Link(self._outer(edge.start), self._outer(edge.end), self._port(edge.start), self._end_port(edge))
            for edge in crossing
        ]
        layout = arrange(sizes, links, gap=_OUTER_GAP, hanging=True)
        for box, panel in self._panels.items():
            x, y = layout.middles[f"panel:{box}"]
            left, top = x - panel.size.width / 2, y - panel.size.height / 2
            self._corners[box] = (left, top)
            self._middles.update({key: (px + left, py + top) for key, (px, py) in panel.middles.items()})
            self._routes += [(edge, _shifted(route, left, top)) for edge, route in panel.routes]
        self._middles.update({key: layout.middles[key] for key in sizes if key in self._items})
        for edge, route in zip(crossing, layout.routes, strict=True):
            points = list(route)
            start, end = self._items[edge.start], self._items[edge.end]
            points[0] = (points[0][0], self._middles[edge.start][1] + start.size.height / 2)
            points[-1:] = self._entry(edge) or [
                (points[-1][0], self._middles[edge.end][1] - end.size.height / 2),
            ]
            self._routes.append((edge, points))
        return layout.size

    def _box(self, key: str) -> int | None:
        return self._items[key].item.box

    def _outer(self, key: str) -> str:
        box = self._box(key)
        return key if box is None else f"panel:{box}"

    def _port(self, key: str) -> float:
        """How far right of the middle of its panel an item stands."""
        box = self._box(key)
        return 0.0 if box is None else self._panels[box].middles[key][0] - self._panels[box].size.width / 2

    def _end_port(self, edge: Edge) -> float:
        """How far right of the middle of its panel a link comes in."""
        inside = self._inside(edge)
        if inside is None:
            return self._port(edge.end)
        panel, way = inside
        return way[0][0] - panel.size.width / 2

    def _entry(self, edge: Edge) -> Sequence[Point]:
        """The way of a look-up inside of its panel; nothing for other links."""
        inside = self._inside(edge)
        box = self._box(edge.end)
        if inside is None or box is None:
            return []
        return _shifted(inside[1], *self._corners[box])

    def _inside(self, edge: Edge) -> tuple[_Panel, Sequence[Point]] | None:
        box = self._box(edge.end)
        panel = None if box is None else self._panels[box]
        return None if panel is None or edge not in panel.entries else (panel, panel.entries[edge])

    # --- text ---

    def _panel_text(self, box: int, panel: _Panel) -> str:
        x, y = self._corners[box]
        return (
            f'<g class="panel"><rect x="{px(x)}" y="{px(y)}" width="{px(panel.size.width)}" '
            f'height="{px(panel.size.height)}" rx="12"/>'
            f'<text x="{px(x + self._free_for_title(panel))}" y="{px(y + 23)}">{escape(panel.title)}</text></g>'
        )

    def _free_for_title(self, panel: _Panel) -> float:
        """Where no link comes in, as far left as possible."""
        inside = panel.middles
        entering = [edge for edge in self._edges if edge.end in inside and edge.start not in inside]
        entered = [panel.entries[edge][0][0] if edge in panel.entries else inside[edge.end][0] for edge in entering]
        width = _title_width(panel.title)
        for left in (_TITLE_LEFT, *(x + 10 for x in sorted(entered))):
            fits = left + width + _TITLE_LEFT <= panel.size.width
            if fits and not any(left - 8 < x < left + width + 8 for x in entered):
                return left
        return _TITLE_LEFT

    def _link_text(self, edge: Edge, route: Sequence[Point]) -> str:
        kind, end = ("link", "tip")
        if edge.two_way or edge.is_look_up:
            kind, end = ("link state", "state-tip") if edge.two_way else ("link state looked-up", "state-tip")
        both = f' marker-start="url(#{end})"' if edge.two_way else ""
        ends = f"{self._numbers[edge.start]} {self._numbers[edge.end]}"
        return f'<path class="{kind}" data-ends="{ends}" d="{path_of(route)}"{both} marker-end="url(#{end})"/>'


# --- groups ---


def _depths(inside: Iterable[str], flow: Sequence[Edge]) -> dict[str, int]:
    """The longest way to each step of a panel; there are no cycles."""
    depths = dict.fromkeys(inside, 0)
    changed = True
    while changed:
        changed = False
        for edge in flow:
            if depths[edge.end] <= depths[edge.start]:
                depths[edge.end] = depths[edge.start] + 1
                changed = True
    return depths


def _owners(uses: Sequence[Edge], depths: Mapping[str, int]) -> dict[str, str]:
    """Beside which step each store stands; none for one that several steps at the same height share."""
    users: dict[str, list[str]] = {}
    for edge in uses:
        users.setdefault(edge.end, []).append(edge.start)
    owners = {}
    for store, steps in users.items():
        first, *others = sorted(steps, key=lambda step: depths[step])
        if all(depths[step] > depths[first] for step in others):
            owners[store] = first
    return owners


def _group(drawn: Drawn, beside: Sequence[Drawn]) -> _Group:
    if not beside:
        return _Group(drawn.size, {drawn.item.key: (0.0, 0.0)})
    store_width, column = max(store.size.width for store in beside), _column(beside)
    size = Size(drawn.size.width + _BESIDE + store_width, max(drawn.size.height, column))
    middles = {drawn.item.key: (drawn.size.width / 2 - size.width / 2, 0.0)}
    y = -column / 2
    for store in beside:
        middles[store.item.key] = (size.width / 2 - store_width / 2, y + store.size.height / 2)
        y += store.size.height + _BETWEEN_STORES
    return _Group(size, middles)


def _column(stores: Sequence[Drawn]) -> float:
    """How high stores are, one above the other."""
    return sum(store.size.height for store in stores) + _BETWEEN_STORES * max(0, len(stores) - 1)


def _at_least(size: Size, column: float) -> Size:
    """As high as nearly all stores beside a step, so that each of them meets its side."""
    return Size(size.width, max(size.height, column - PADDING["store"].height))


def _is_last(key: str, flow: Sequence[Edge]) -> bool:
    return all(edge.start != key for edge in flow)


def _title_width(title: str) -> float:
    return len(title) * 8.0


def _shifted(route: Sequence[Point], dx: float, dy: float) -> list[Point]:
    return [(x + dx, y + dy) for x, y in route]
