"""The functions that the nodes of a task have called when it starts, and when it closes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

Callback: TypeAlias = Callable[[], None]


class NodeCallbacks:
    """The functions to be called for each node: when all nodes are built, and when the task closes.

    Those of one node are called in the order in which it has asked for them. Errors are left to whoever calls them, who
    gets them by node.
    """

    __slots__ = ("_at_close", "_at_init")

    def __init__(self) -> None:
        self._at_init: dict[str, list[Callback]] = {}
        self._at_close: dict[str, list[Callback]] = {}

    def on_init(self, node: str, callback: Callback) -> None:
        """Adds a function for when every node is built."""
        self._at_init.setdefault(node, []).append(callback)

    def on_close(self, node: str, callback: Callback) -> None:
        """Adds a function for when the task closes."""
        self._at_close.setdefault(node, []).append(callback)

    def at_init(self, nodes: Iterable[str]) -> list[tuple[str, list[Callback]]]:
        """Returns those to be called first, in the order of the nodes."""
        return [(node, self._at_init[node]) for node in nodes if node in self._at_init]

    def at_close(self, nodes: Iterable[str]) -> list[tuple[str, list[Callback]]]:
        """Returns those to be called last, in the order of the nodes."""
        return [(node, self._at_close[node]) for node in nodes if node in self._at_close]

    def clear(self) -> None:
        """Forgets all of them."""
        self._at_init.clear()
        self._at_close.clear()
