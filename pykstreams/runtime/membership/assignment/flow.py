"""A network through which units flow at the least cost, by augmenting paths and cancelling negative cycles.

Among several optima the one that comes out depends on the order in which paths and cycles are found. It is that of
``Graph`` in Kafka Streams 4.3.1: nodes and edges are gone through by number, and the cycle is the one that
Bellman-Ford's last round ends in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(slots=True)
class _Edge:
    """One direction of an edge; the flow through it is what has been taken from its counterpart's room."""

    source: int
    target: int
    cost: int
    room: int
    back: _Edge | None = None
    forward: bool = True

    @property
    def counterpart(self) -> _Edge:
        assert self.back is not None
        return self.back


class FlowNetwork:
    """Nodes are numbers from 0 on, besides the source, which is -1.

    Invariant: what flows into a node flows out of it, but for source and sink.
    """

    SOURCE = -1

    def __init__(self, sink: int) -> None:
        self._sink = sink
        self._edges: dict[int, dict[int, _Edge]] = {}

    def add(self, source: int, target: int, *, capacity: int, cost: int = 0, flow: int = 0) -> None:
        """Adds an edge through which something may flow already."""
        forth = _Edge(source, target, cost, capacity - flow)
        back = _Edge(target, source, -cost, flow, forth, forward=False)
        forth.back = back
        self._edges.setdefault(source, {})[target] = forth
        self._edges.setdefault(target, {})[source] = back

    def targets(self, source: int) -> Iterator[int]:
        """The nodes that something flows to from a node, by number."""
        for target, edge in sorted(self._edges[source].items()):
            if edge.forward and edge.counterpart.room > 0:
                yield target

    def fill(self) -> int:
        """Lets as much flow as can, at whatever cost; returns how much flows in all."""
        edges = self._sorted()
        while path := self._free_path(edges):
            _push(path)
        return sum(edge.counterpart.room for edge in self._edges[self.SOURCE].values())

    def cheapen(self) -> None:
        """Lets the same amount flow at the least cost."""
        edges = self._sorted()
        while cycle := _negative_cycle(edges):
            _push(cycle)

    def _sorted(self) -> dict[int, list[_Edge]]:
        return {node: [edge for _, edge in sorted(self._edges[node].items())] for node in sorted(self._edges)}

    def _free_path(self, edges: dict[int, list[_Edge]]) -> list[_Edge]:
        """The shortest way from source to sink with room on it; empty: there is none."""
        came_by: dict[int, _Edge] = {}
        waiting = deque([self.SOURCE])
        while waiting:
            for edge in edges[waiting.popleft()]:
                if edge.room <= 0 or edge.target in came_by or edge.target == self.SOURCE:
                    continue
                came_by[edge.target] = edge
                if edge.target == self._sink:
                    return _way_back(came_by, self._sink, self.SOURCE)
                waiting.append(edge.target)
        return []


def _negative_cycle(edges: dict[int, list[_Edge]]) -> list[_Edge]:
    """Finds a cycle of negative cost with room on it; empty: there is none.

    A node is looked at only if its distance has changed since it was last: the others cannot change anything.
    """
    distances = dict.fromkeys(edges, 0)
    came_by: dict[int, _Edge] = {}
    changed = set(edges)
    # as many rounds as there are nodes, with the one that stands before all; its own edges are the distances of 0
    for last in (*[False] * len(edges), True):
        found: _Edge | None = None
        for node, leaving in edges.items():
            if node not in changed:
                continue
            changed.discard(node)
            distance = distances[node]
            for edge in leaving:
                if edge.room and distances[edge.target] > distance + edge.cost:
                    distances[edge.target] = distance + edge.cost
                    came_by[edge.target] = edge
                    changed.add(edge.target)
                    if last:
                        found = edge
                        break
            if found:
                return _cycle(came_by, found.target)
        if not changed:
            return []
    return []


def _cycle(came_by: dict[int, _Edge], start: int) -> list[_Edge]:
    seen: set[int] = set()
    node = start
    while node not in seen:
        seen.add(node)
        node = came_by[node].source
    return _way_back(came_by, node, node)


def _way_back(came_by: dict[int, _Edge], end: int, start: int) -> list[_Edge]:
    way = [came_by[end]]
    while way[-1].source != start:
        way.append(came_by[way[-1].source])
    return way


def _push(way: list[_Edge]) -> None:
    amount = min(edge.room for edge in way)
    for edge in way:
        edge.room -= amount
        edge.counterpart.room += amount
