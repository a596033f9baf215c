"""How an application is, in one value for a probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pykstreams.core.ids import TaskId
from pykstreams.runtime.life_cycle import State


@dataclass(frozen=True, slots=True)
class TaskHealth:
    """One task: whether its records are processed, and else how many changelog offsets it has to restore, if that is
    known.
    """

    running: bool
    remaining: int


@dataclass(frozen=True, slots=True)
class Health:
    """How an application is, for a probe."""

    alive: bool
    """False when it has failed, or a worker is stuck: start it again."""
    ready: bool
    """True when every task it owns is running, and no worker is stuck."""
    state: State
    tasks: Mapping[TaskId, TaskHealth]
    stuck: Mapping[str, int] = field(default_factory=dict)
    """The workers that have been in one turn, mostly in one call of a user's function, for longer than
    ``max.poll.interval.ms``, and for how many ms: the group has given their tasks to others.
    """
