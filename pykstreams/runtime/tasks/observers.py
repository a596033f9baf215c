"""The observers of each record of a task, compiled into its path where settings ask for them."""

from __future__ import annotations

from typing import Protocol

from pykstreams.core.types import Forward, Produce


class RecordObserver(Protocol):
    """Wraps the ends of a path while a task is compiled."""

    def at_source(self, node: str, forward: Forward) -> Forward:
        """Wraps the children of a source."""
        ...

    def at_end(self, node: str, forward: Forward) -> Forward:
        """Wraps a node without children that is no sink."""
        ...

    def at_sink(self, node: str, send: Produce) -> Produce:
        """Wraps one of the ways out of a sink."""
        ...
