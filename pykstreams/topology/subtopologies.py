"""Which nodes belong together: nodes joined by anything but a topic form one sub-topology."""

from __future__ import annotations

from collections.abc import Iterable


class NodeGroups:
    """Union-find over node names; groups are numbered by their first node in the order of adding."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def add(self, name: str) -> None:
        self._parent[name] = name

    def unite(self, name: str, others: Iterable[str]) -> None:
        for other in others:
            root, other_root = self._root(name), self._root(other)
            if root != other_root:
                self._parent[other_root] = root

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The groups in the order of their ids, the nodes of each in the order of adding."""
        found: dict[str, list[str]] = {}
        for name in self._parent:
            found.setdefault(self._root(name), []).append(name)
        return tuple(tuple(names) for names in found.values())

    def _root(self, name: str) -> str:
        while (above := self._parent[name]) != name:
            self._parent[name] = self._parent[above]
            name = above
        return name
