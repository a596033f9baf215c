"""Swaps the tasks of a worker, one after the other, for the state of a bootstrap; on the worker's thread.

A task that is due gets a shadow, which the state updater brings near. Each time that it is, the worker commits, and the
shadow comes nearer, until it is so quick that the task can be held at a commit. When the shadow has written what the
changelogs lack the offsets are committed with the new generation, and the task is opened anew.

Invariant: a task is held only from a commit of its own until its swap is committed or given up, and is opened then as
the group says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError, StreamsError, TaskMigratedError
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.membership.membership import Membership
from pykstreams.runtime.swap.bootstrap import GENERATION
from pykstreams.runtime.swap.generation import Generation
from pykstreams.runtime.swap.shadow import Shadow
from pykstreams.runtime.swap.swap_output import SwapOutput
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.worker.task_manager import Running, TaskManager

log = logging.getLogger(__name__)

_SOON_S = 0.5
_ROUNDS = 10
"""How often a shadow that takes longer than that to come to a commit is given another one, before the task is held."""

_ATTEMPTS = 5
"""How often the brokers may get in the way of a swap before it is given up."""


class ShadowKeeper(Protocol):
    """The methods of the state updater that this module calls."""

    def follow(self, shadow: Shadow) -> None: ...


class Swaps:
    """The swaps of one worker.

    :param make_shadow: makes the next generation of a task, of which the committed offsets are given.
    :param transaction_s: how long a transaction of the output may last, before the brokers abort it.
    """

    def __init__(
        self,
        worker: str,
        *,
        tasks: TaskManager,
        updater: ShadowKeeper,
        membership: Membership,
        output: SwapOutput,
        make_shadow: Callable[[Task, Offsets, Generation], Shadow],
        clock: Clock,
        transaction_s: float,
    ) -> None:
        self._worker = worker
        self._tasks = tasks
        self._updater = updater
        self._membership = membership
        self._output = output
        self._make_shadow = make_shadow
        self._clock = clock
        self._transaction_s = transaction_s
        self._waits_since: float | None = None
        self._followed_at = 0.0
        self._rounds = 0
        self._generation: Generation | None = None
        self._swapping: tuple[Running, Shadow, Generation] | None = None
        self._failures = 0

    def want(self, generation: Generation) -> None:
        """Sets the state that tasks are to be swapped to from now on; may be called from any thread."""
        self._generation = generation

    def poll(self) -> None:
        """Begins swaps, and ends them; call it once a turn."""
        if self._swapping is not None:
            live, shadow, generation = self._swapping
            if not self._tasks.has(live):  # it left; its shadow was closed with it
                self._swapping = None
            elif shadow.failure is not None:
                self._failed(live, generation, shadow.failure)
            elif shadow.written is not None:
                self._commit_when_it_may(live, shadow, generation)
        elif self._generation is not None and self._tasks.all_running:
            self._begin(self._generation)

    @property
    def commit_requested(self) -> bool:
        """Whether a commit would bring a swap further."""
        return self._swapping is not None and self._swapping[1].near and self._is_fed(self._swapping[0])

    @property
    def holds_a_task(self) -> bool:
        """Whether a task stands still until its swap is done."""
        return self._swapping is not None and not self._is_fed(self._swapping[0])

    def after_commit(self) -> Running | None:
        """Goes on after a commit of all tasks; returns the one that is held from now on."""
        if self._swapping is None or not self._is_fed(self._swapping[0]):
            return None
        live, shadow, _ = self._swapping
        task_id, now = live.task.id, self._clock.monotonic()
        if not shadow.near or (now - self._followed_at > _SOON_S and self._rounds < _ROUNDS):
            self._rounds += shadow.near
            self._followed_at = now
            shadow.follow(live.committed)
            return None
        self._tasks.hold(task_id)
        shadow.swap(live.committed)
        log.info("task %s is held while its next state comes to where it is", task_id)
        return live

    def close(self) -> None:
        """Lets go of the producer; shadows are closed with their tasks."""
        self._output.close()

    def _begin(self, generation: Generation) -> None:
        due = [one for one in self._tasks.running.values() if generation.is_due(one.task.id, _generation_of(one.task))]
        generation.report(self._worker, frozenset(one.task.id for one in due))
        if not due or generation.error is not None:
            return
        one = min(due, key=lambda found: found.task.id)
        shadow = self._make_shadow(one.task, dict(one.committed), generation)
        self._swapping = one, shadow, generation
        self._followed_at, self._rounds = self._clock.monotonic(), 0
        self._waits_since = None
        self._updater.follow(shadow)

    def _is_fed(self, live: Running) -> bool:
        return self._tasks.running.get(live.task.id) is live

    def _commit_when_it_may(self, live: Running, shadow: Shadow, generation: Generation) -> None:
        """Waits while the group shares out its tasks anew, as long as the transaction that is open lasts."""
        if self._membership.may_commit():
            self._commit(live, shadow, generation)
            return
        now = self._clock.monotonic()
        since = self._waits_since = now if self._waits_since is None else self._waits_since
        if now - since > self._transaction_s:
            over = (
                f"the group has shared out its tasks anew for {now - since:.0f} s, longer than a transaction may last "
                f"({self._transaction_s:g} s, producer.transaction.timeout.ms)"
            )
            self._failed(live, generation, TaskMigratedError(over))

    def _commit(self, live: Running, shadow: Shadow, generation: Generation) -> None:
        try:
            self._output.commit(shadow.written or {}, self._membership.transaction_metadata())
        except (TaskMigratedError, ClusterError) as error:
            self._failed(live, generation, error)
            return
        self._failures = 0
        self._swapping = None
        self._tasks.close_held(live.task.id, shadow)

    def _failed(self, live: Running, generation: Generation, error: StreamsError) -> None:
        """Lets the task go on as the group says it is; tries again where the brokers were in the way."""
        self._swapping = None
        self._failures += 1
        passing = isinstance(error, TaskMigratedError | ClusterError) and self._failures < _ATTEMPTS
        if passing:
            log.warning("task %s was not swapped, and is tried again: %s", live.task.id, error)
        else:
            log.error("task %s keeps its state, and no further task is swapped: %s", live.task.id, error)
            self._failures = 0
            generation.give_up(error)
        self._tasks.close_held(live.task.id, None)


def _generation_of(task: Task) -> int | None:
    return task.metadata.get(GENERATION)
