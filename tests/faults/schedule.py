"""Which faults there will be, and when: made of a seed, printed, and read back.

Brokers have one fault at a time, so have each application and the input; faults of different ones overlap.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

CLUSTER = "cluster"
"""The target of faults that concern all nodes."""

INPUT = "input"
"""The target of faults of what is fed in."""

_FIRST_S = 10.0
_LAST_S = 15.0
"""So long before the end of a run no fault begins any more."""
_PAUSE_BETWEEN_BROKER_FAULTS_S = (20.0, 40.0)
_PAUSE_BETWEEN_WORKER_FAULTS_S = (20.0, 50.0)
_PAUSE_BETWEEN_POISON_S = (20.0, 60.0)
_ROLL_S = 40.0
"""How long a rolling restart takes, about."""


class Action(StrEnum):
    """What is done to a process, or to the cluster."""

    KILL = "kill"
    """SIGKILL; started again after a while."""
    WIPE = "wipe"
    """A worker is killed, and its state directory is lost."""
    RESTART = "restart"
    """SIGTERM; started again after a while."""
    PAUSE = "pause"
    """SIGSTOP, and SIGCONT after a while."""
    ROLL = "roll"
    """All nodes are restarted in order, one after the other."""
    ELECT = "elect"
    """The preferred leaders are elected, of internal topics too."""
    COORDINATOR = "coordinator"
    """The node that coordinates a group is restarted in order."""
    CUT = "cut"
    """The network between a worker and all nodes is gone for a while."""
    ADD = "add"
    """A worker more is there for a while, and ends in order."""
    REMOVE = "remove"
    """A worker ends in order, and is not there for a while."""
    FILL = "fill"
    """The disk of a worker has no room for a while, in which it is killed and started again."""
    AHEAD = "ahead"
    """The clock of a worker is an hour ahead for a while."""
    BEHIND = "behind"
    """The clock of a worker is an hour behind for a while."""
    POISON = "poison"
    """Records that nobody can read or process are among the input for a while."""


OF_BROKERS = {
    Action.KILL: 3,
    Action.PAUSE: 3,
    Action.RESTART: 2,
    Action.ROLL: 1,
    Action.ELECT: 3,
    Action.COORDINATOR: 2,
}
"""How often each of them happens to brokers, beside the others; the last three need several."""

OF_WORKERS = {
    Action.KILL: 4,
    Action.WIPE: 2,
    Action.RESTART: 3,
    Action.PAUSE: 4,
    Action.CUT: 3,
    Action.ADD: 2,
    Action.REMOVE: 2,
    Action.FILL: 1,
    Action.AHEAD: 1,
    Action.BEHIND: 1,
}
"""Likewise of workers; a worker more, or less, is for fleets of several."""

_OF_SEVERAL_BROKERS = (Action.ROLL, Action.ELECT, Action.COORDINATOR)
_OF_SEVERAL_WORKERS = (Action.ADD, Action.REMOVE)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; ``length_s`` is how long its target is away."""

    at_s: float
    target: str
    action: Action
    length_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.at_s:8.1f} s  {self.target:<16} {self.action:<12} {self.length_s:5.1f} s"


_LINE = re.compile(r"\s*([\d.]+) s\s+(\S+)\s+(\S+)\s+([\d.]+) s\s*$")


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers of an application: those that are there, and one that can be added."""

    workers: Sequence[str]
    spare: str


def plan(
    *,
    seed: int,
    length_s: float,
    nodes: Sequence[str],
    crews: Mapping[str, Crew],
    wanted: Collection[Action] = tuple(Action),
) -> list[Fault]:
    """The faults of a run, ordered by time.

    :param crews: by the names of applications.
    :param wanted: the kinds of faults; those of brokers and of workers are told apart by what they are done to.
    """
    # a target has a chance of its own, so that another application more leaves the faults of the rest as they are
    faults = [*_broker_faults(random.Random(f"{seed} {nodes}"), length_s, nodes, wanted)]
    for application, crew in crews.items():
        faults += _worker_faults(random.Random(f"{seed} {application}"), length_s, crew, wanted)
    if Action.POISON in wanted:
        faults += _input_faults(random.Random(f"{seed} {INPUT}"), length_s)
    return sorted(faults, key=lambda fault: (fault.at_s, fault.target))


def read(text: str) -> list[Fault]:
    """Reads back what was printed, one fault a line; other lines are passed over."""
    found = filter(None, map(_LINE.match, text.splitlines()))
    return [Fault(float(line[1]), line[2], Action(line[3]), float(line[4])) for line in found]


def _broker_faults(
    chance: random.Random, length_s: float, nodes: Sequence[str], wanted: Collection[Action]
) -> Iterator[Fault]:
    left_out = () if len(nodes) > 1 else _OF_SEVERAL_BROKERS
    actions = {action: weight for action, weight in OF_BROKERS.items() if action in wanted and action not in left_out}
    at_s = _FIRST_S + _between(chance, (0.0, 10.0))
    while actions and at_s < length_s - _LAST_S:
        (action,) = chance.choices([*actions], [*actions.values()])
        target, away_s = chance.choice(nodes), 0.0
        match action:
            case Action.PAUSE:
                away_s = _between(chance, (10.0, 90.0))
            case Action.KILL:
                away_s = _between(chance, chance.choice([(0.0, 1.0), (5.0, 20.0), (20.0, 75.0)]))
            case Action.RESTART | Action.COORDINATOR:
                away_s = _between(chance, (0.0, 5.0))
            case Action.ROLL:
                away_s = _ROLL_S
        if action in _OF_SEVERAL_BROKERS:
            target = CLUSTER
        if at_s + away_s < length_s:
            yield Fault(at_s, target, action, away_s)
        at_s = round(at_s + away_s + _between(chance, _PAUSE_BETWEEN_BROKER_FAULTS_S), 1)


def _worker_faults(chance: random.Random, length_s: float, crew: Crew, wanted: Collection[Action]) -> Iterator[Fault]:
    left_out = () if len(crew.workers) > 1 else _OF_SEVERAL_WORKERS
    actions = {action: weight for action, weight in OF_WORKERS.items() if action in wanted and action not in left_out}
    at_s = _between(chance, (_FIRST_S, 40.0))
    while actions and at_s < length_s - _LAST_S:
        (action,) = chance.choices([*actions], [*actions.values()])
        match action:
            case Action.PAUSE | Action.CUT:
                lengths = [(2.0, 5.0), (8.0, 16.0), (20.0, 40.0)]
            case Action.ADD | Action.REMOVE | Action.FILL | Action.AHEAD | Action.BEHIND:
                lengths = [(10.0, 40.0)]
            case _:
                lengths = [(0.0, 1.0), (2.0, 12.0)]
        away_s = _between(chance, chance.choice(lengths))
        if at_s + away_s < length_s:
            worker = chance.choice(crew.workers)
            yield Fault(at_s, crew.spare if action is Action.ADD else worker, action, away_s)
        at_s = round(at_s + away_s + _between(chance, _PAUSE_BETWEEN_WORKER_FAULTS_S), 1)


def _input_faults(chance: random.Random, length_s: float) -> Iterator[Fault]:
    at_s = _between(chance, (_FIRST_S, 40.0))
    while at_s < length_s - _LAST_S:
        lasts_s = _between(chance, (1.0, 8.0))
        yield Fault(at_s, INPUT, Action.POISON, lasts_s)
        at_s = round(at_s + lasts_s + _between(chance, _PAUSE_BETWEEN_POISON_S), 1)


def _between(chance: random.Random, limits: tuple[float, float]) -> float:
    return round(chance.uniform(*limits), 1)
