"""The facts of ``/live.json`` as this side reads them: those of one instance, of its tasks, nodes and copies."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class TaskFacts(TypedDict):
    """A task; ``lag`` is ``None`` where the ends of its inputs are not known yet."""

    id: str
    subtopology: int
    partition: int
    running: bool
    remaining: int
    processed: int
    late: int
    dropped: int
    failed: int
    lag: int | None


class NodeFacts(TypedDict):
    """The counts of a node, as far as it counts."""

    consumed: NotRequired[int]
    produced: NotRequired[int]
    emitted: NotRequired[int]
    late: NotRequired[int]
    dropped: NotRequired[int]
    failed: NotRequired[int]


class CopyFacts(TypedDict):
    """A standby copy, and how many offsets it is behind, where that is known."""

    store: str
    partition: int
    lag: int | None


class LineFacts(TypedDict):
    """A line of the log."""

    at_ms: int
    level: str
    thread: str
    text: str


class InstanceFacts(TypedDict):
    """An instance; with ``error`` nothing else is there but its address."""

    instance: str
    error: NotRequired[str]
    application: str
    now_ms: int
    state: str
    ready: bool
    tasks: list[TaskFacts]
    standbys: list[CopyFacts]
    nodes: dict[str, NodeFacts]
    log: list[LineFacts]
