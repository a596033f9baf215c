"""Places the nodes of a directed graph in layers from top to bottom, and says along which points links go.

The usual steps (Sugiyama, Tagawa, Toda 1981): break cycles, give each node a layer, let long links pass the layers
between by places of their own, order each layer so that few links cross, and move nodes as close to under their
neighbours as the order allows. The same graph always gets the same drawing, on every Python (hence ``fsum``).

Invariant: nodes do not overlap, and a link passes a layer beside the nodes in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

Point = tuple[float, float]

_SWEEPS = 24
_PASSING_WIDTH = 14.0
_STRAIGHT = 8.0
"""How much more a link wants to be straight where it passes layers, or joins two nodes that have no other."""
_STUB = 8.0
"""How far a link goes straight at its ends, so that its tips point up and down."""


@dataclass(frozen=True, slots=True)
class Size:
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Link:
    """From the bottom of ``start`` to the top of ``end``; ``*_dx`` says how far from their middles it is fixed."""

    start: str
    end: str
    start_dx: float = 0.0
    end_dx: float = 0.0


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Middles of the nodes, and for each link the points that it goes through; the corner at the top left is (0, 0)."""

    middles: Mapping[str, Point]
    routes: Sequence[Sequence[Point]]
    size: Size


@dataclass(slots=True)
class _Joint:
    """A link between two layers that follow each other, and how far from the middles of its places it is fixed."""

    upper: _Place
    lower: _Place
    upper_dx: float
    lower_dx: float
    passing: bool

    @property
    def weight(self) -> float:
        alone = len(self.upper.below) == len(self.lower.above) == 1
        return _STRAIGHT if self.passing or alone else 1.0


@dataclass(slots=True)
class _Place:
    """A node in its layer, or where a link passes a layer."""

    width: float
    height: float
    layer: int
    x: float = 0.0
    above: list[_Joint] = field(default_factory=list)
    below: list[_Joint] = field(default_factory=list)


def arrange(
    sizes: Mapping[str, Size],
    links: Sequence[Link],
    *,
    gap: Size,
    bottom: Collection[str] = (),
    top: Collection[str] = (),
    hanging: bool = False,
) -> GraphLayout:
    """Arranges nodes; those of ``top`` and ``bottom`` go to the first and the last layer, if links allow it.

    :param hanging: whether nodes of a layer have their upper ends at one height, and not their middles.
    """
    if not sizes:
        return GraphLayout({}, [], Size(0, 0))
    back = _back_links(sizes, links)
    ranks = _ranks(sizes, [link for i, link in enumerate(links) if i not in back], top, bottom)
    layers: list[list[_Place]] = [[] for _ in range(max(ranks.values()) + 1)]
    places = {}
    for name, size in sizes.items():
        places[name] = _Place(size.width, size.height, ranks[name])
        layers[ranks[name]].append(places[name])
    passing = [_passing(link, i in back, places, layers) for i, link in enumerate(links)]
    _order(layers)
    _spread(layers, gap.width)
    return _measured(places, layers, links, passing, back, gap, hanging)


def _back_links(sizes: Iterable[str], links: Sequence[Link]) -> set[int]:
    """The links that close a cycle, when nodes are visited in their order."""
    leaving: dict[str, list[int]] = {name: [] for name in sizes}
    for i, link in enumerate(links):
        leaving[link.start].append(i)
    found: set[int] = set()
    state: dict[str, int] = {}
    for root in leaving:
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(leaving[root]))]
        while stack:
            name, rest = stack[-1]
            number = next(rest, None)
            if number is None:
                state[name] = 2
                stack.pop()
                continue
            end = links[number].end
            if state.get(end) == 1:
                found.add(number)
            elif end not in state:
                state[end] = 1
                stack.append((end, iter(leaving[end])))
    return found


def _ranks(
    sizes: Iterable[str], links: Sequence[Link], top: Collection[str], bottom: Collection[str]
) -> dict[str, int]:
    """The longest way from above; what has nothing above it comes down to what it leads to."""
    ranks = dict.fromkeys(sizes, 0)
    changed = True
    while changed:
        changed = False
        for link in links:
            if ranks[link.end] <= ranks[link.start]:
                ranks[link.end] = ranks[link.start] + 1
                changed = True
    entered = {link.end for link in links}
    for name in ranks:
        led_to = [ranks[link.end] for link in links if link.start == name]
        if name not in entered and name not in top and led_to:
            ranks[name] = min(led_to) - 1
    last = max(ranks.values())
    for name in bottom:
        ranks[name] = last
    return ranks


def _passing(link: Link, back: bool, places: Mapping[str, _Place], layers: list[list[_Place]]) -> list[_Place]:
    """Makes the places where a link passes layers, in its direction. One that goes up passes those of its ends, too."""
    start, end = places[link.start], places[link.end]
    if back:
        between = range(start.layer, end.layer - 1, -1)
    else:
        between = range(start.layer + 1, end.layer)
    made = [_Place(_PASSING_WIDTH, 0, layer) for layer in between]
    for place in made:
        layers[place.layer].append(place)
    if back:
        for lower, upper in itertools.pairwise(made):
            _connect(upper, lower, 0, 0, passing=True)
        return made
    chain = [start, *made, end]
    for i, (upper, lower) in enumerate(itertools.pairwise(chain)):
        start_dx = link.start_dx if i == 0 else 0
        end_dx = link.end_dx if i == len(chain) - 2 else 0
        inner = upper is not start and lower is not end
        _connect(upper, lower, start_dx, end_dx, passing=inner)
    return made


def _connect(upper: _Place, lower: _Place, upper_dx: float, lower_dx: float, *, passing: bool) -> None:
    joint = _Joint(upper, lower, upper_dx, lower_dx, passing)
    upper.below.append(joint)
    lower.above.append(joint)


# --- the order within layers ---


def _order(layers: list[list[_Place]]) -> None:
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for i in range(1, len(layers)) if down else range(len(layers) - 2, -1, -1):
            _sort_by_neighbours(layers[i], layers[i - 1] if down else layers[i + 1], down=down)
        _swap_neighbours(layers)
        count = _crossings(layers)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
        if not fewest:
            break
    layers[:] = best


def _sort_by_neighbours(layer: list[_Place], fixed: Sequence[_Place], *, down: bool) -> None:
    positions = {id(place): i for i, place in enumerate(fixed)}
    wanted = {}
    for i, place in enumerate(layer):
        joints = place.above if down else place.below
        found = [
            positions[id(joint.upper)] + joint.upper_dx / joint.upper.width
            if down
            else positions[id(joint.lower)] + joint.lower_dx / joint.lower.width
            for joint in joints
        ]
        wanted[id(place)] = fsum(found) / len(found) if found else float(i)
    layer.sort(key=lambda place: wanted[id(place)])


def _swap_neighbours(layers: list[list[_Place]]) -> None:
    for i, layer in enumerate(layers):
        around = layers[max(0, i - 1) : i + 2]
        for j in range(len(layer) - 1):
            before = _crossings(around)
            layer[j], layer[j + 1] = layer[j + 1], layer[j]
            if _crossings(around) >= before:
                layer[j], layer[j + 1] = layer[j + 1], layer[j]


def _crossings(layers: Sequence[Sequence[_Place]]) -> int:
    count = 0
    for upper, lower in itertools.pairwise(layers):
        positions = {id(place): i for i, place in enumerate(lower)}
        ends = [
            (i + joint.upper_dx / place.width, positions[id(joint.lower)] + joint.lower_dx / joint.lower.width)
            for i, place in enumerate(upper)
            for joint in place.below
        ]
        count += sum((a < c and b > d) or (a > c and b < d) for k, (a, b) in enumerate(ends) for c, d in ends[k + 1 :])
    return count


# --- where in the layer ---


def _spread(layers: list[list[_Place]], gap: float) -> None:
    for layer in layers:
        x = 0.0
        for place in layer:
            place.x = x + place.width / 2
            x += place.width + gap
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            both = sweep >= _SWEEPS // 2
            _settle(layer, gap, above=both or sweep % 2 == 0, below=both or sweep % 2 == 1)
    left = min(place.x - place.width / 2 for layer in layers for place in layer)
    for layer in layers:
        for place in layer:
            place.x -= left


def _settle(layer: Sequence[_Place], gap: float, *, above: bool, below: bool) -> None:
    """Moves places as close to where their neighbours want them as order and gaps allow: least squares, exactly.

    With the gaps taken out it is a regression to values that do not fall: neighbours that would get in each other's
    way are pooled, and share the mean of their wishes.
    """
    offset, offsets = 0.0, []
    for i, place in enumerate(layer):
        if i:
            offset += (layer[i - 1].width + place.width) / 2 + gap
        offsets.append(offset)
    pools: list[tuple[float, float, int]] = []  # (sum of weighted wishes, sum of weights, members)
    for place, taken in zip(layer, offsets, strict=True):
        wishes = [
            *((joint.upper.x + joint.upper_dx - joint.lower_dx, joint.weight) for joint in place.above if above),
            *((joint.lower.x + joint.lower_dx - joint.upper_dx, joint.weight) for joint in place.below if below),
        ]
        weight = fsum(weight for _, weight in wishes)
        wish = fsum(x * weight for x, weight in wishes)
        if not weight:
            weight, wish = 0.01, place.x * 0.01
        pool = (wish - taken * weight, weight, 1)
        while pools and pools[-1][0] / pools[-1][1] >= pool[0] / pool[1]:
            last = pools.pop()
            pool = (last[0] + pool[0], last[1] + pool[1], last[2] + pool[2])
        pools.append(pool)
    i = 0
    for wish, weight, members in pools:
        for _ in range(members):
            layer[i].x = wish / weight + offsets[i]
            i += 1


# --- the result ---


def _measured(
    places: Mapping[str, _Place],
    layers: Sequence[Sequence[_Place]],
    links: Sequence[Link],
    passing: Sequence[Sequence[_Place]],
    back: Collection[int],
    gap: Size,
    hanging: bool,
) -> GraphLayout:
    tops: list[float] = []
    turning = gap.height / 2 if back else 0.0  # links that go up turn below the lowest and above the highest layer
    y = turning
    for layer in layers:
        tops.append(y)
        y += max(place.height for place in layer) + gap.height
    heights = [max(place.height for place in layer) for layer in layers]
    middles = {
        name: (place.x, tops[place.layer] + (place.height if hanging else heights[place.layer]) / 2)
        for name, place in places.items()
    }
    routes: list[list[Point]] = []
    for i, (link, passed) in enumerate(zip(links, passing, strict=True)):
        start, end = places[link.start], places[link.end]
        start_x, end_x = start.x + link.start_dx, end.x + link.end_dx
        straight = 0.0 if i in back else min(_STUB, gap.height / 4)
        route = [
            (start_x, middles[link.start][1] + start.height / 2),
            (start_x, tops[start.layer] + heights[start.layer] + straight),
        ]
        for place in passed:
            upper, lower = (place.x, tops[place.layer]), (place.x, tops[place.layer] + heights[place.layer])
            route += [lower, upper] if i in back else [upper, lower]
        route += [(end_x, tops[end.layer] - straight), (end_x, middles[link.end][1] - end.height / 2)]
        routes.append(route)
    right = max(place.x + place.width / 2 for layer in layers for place in layer)
    return GraphLayout(middles, routes, Size(right, y - gap.height + turning))
