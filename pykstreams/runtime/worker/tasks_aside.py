"""Tasks that wait before they are opened again, since a store of theirs failed.

A task whose store was damaged, and set aside, is opened at once and restored; when that happens to it again before
long, its disk is not to be trusted, and it waits like any other that failed. A task whose disk is full waits until
there is room, which is looked for ever more seldom.

Invariant: each cause is logged when it comes up, and that disks are full once per ``RETRY_S`` at most.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from pykstreams.core.clock import Clock
from pykstreams.core.errors import DiskFullError, StoreEngineError
from pykstreams.core.ids import TaskId
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.state.directory.disk_room import MeasureRoom, room_of

log = logging.getLogger(__name__)

RETRY_S: Final = 30.0
"""How long a task is set aside, and so how often a store that cannot be used is reported."""

TRUSTED_AGAIN_S: Final = 600.0
"""How long after a damage the next one in the same task is one too many for it to be restored at once."""

LOOK_EVERY_S: Final = 1.0
"""How often room is looked for on a disk that is full, and how long a task waits at least before it is opened again;
after each failure in spite of room it waits twice as long, up to ``RETRY_S``."""

_WORKED_S: Final = 2 * RETRY_S
"""A task that found room so long ago has worked since; the next time it waits as long as the first time."""


@dataclass(slots=True)
class _ForRoom:
    """A task whose disk is, or was, full: when room is looked for next, and how long it waits when it fails again."""

    folder: str
    look_at: float
    wait_s: float = LOOK_EVERY_S
    waits: bool = True


class TasksAside:
    """The tasks of one worker that are set aside; for its thread only.

    :param keep: notes that the state of a task is wanted while nobody has it open, so that it is not cleaned up.
    """

    def __init__(
        self, clock: Clock, measure_room: MeasureRoom = room_of, keep: Callable[[TaskId], None] = lambda _: None
    ) -> None:
        self._clock = clock
        self._measure_room = measure_room
        self._keep = keep
        self._until: dict[TaskId, float] = {}
        self._for_room: dict[TaskId, _ForRoom] = {}
        self._damaged_at: dict[TaskId, float] = {}
        self._full = RepeatedWarnings(log, clock, RETRY_S)

    def add(self, task_id: TaskId, error: StoreEngineError, *, is_restored: bool) -> None:
        """Adds a task that was closed.

        :param is_restored: whether its damaged store was set aside and has a changelog; that was logged.
        """
        now = self._clock.monotonic()
        if isinstance(error, DiskFullError):
            self._wait_for_room(task_id, error.folder, now)
        elif not is_restored:
            log.error("task %s is closed, and tried again every %g s; other tasks go on: %s", task_id, RETRY_S, error)
            self._until[task_id] = now + RETRY_S
        elif self._is_trusted(task_id, now):
            self._until[task_id] = now
        else:
            log.error(
                "task %s: a store of it was damaged less than %g s ago, too, so it waits %g s before it is restored; "
                "look at the disk",
                task_id,
                TRUSTED_AGAIN_S,
                RETRY_S,
            )
            self._until[task_id] = now + RETRY_S

    def put_off(self, tasks: Iterable[TaskId], wait_s: float) -> None:
        """Has tasks wait so long at least that were closed for another reason than their stores; it was logged."""
        until = self._clock.monotonic() + wait_s
        self._until.update({task_id: max(until, self._until.get(task_id, until)) for task_id in tasks})

    def may_open(self, task_id: TaskId) -> bool:
        """Whether a task may be opened; looks for room where it waits for that, and it is time to."""
        now = self._clock.monotonic()
        if now < self._until.get(task_id, 0):
            return False
        one = self._for_room.get(task_id)
        return one is None or not one.waits or self._has_room(task_id, one, now)

    def _is_trusted(self, task_id: TaskId, now: float) -> bool:
        before = self._damaged_at.get(task_id)
        self._damaged_at[task_id] = now
        return before is None or now - before > TRUSTED_AGAIN_S

    def _wait_for_room(self, task_id: TaskId, folder: str, now: float) -> None:
        one = self._for_room.get(task_id)
        if one is None or now - one.look_at > _WORKED_S:
            one = _ForRoom(folder, now)
        one.folder, one.waits = folder, True
        self._for_room[task_id] = one
        one.look_at, one.wait_s = now + one.wait_s, min(2 * one.wait_s, RETRY_S)
        self._warn(one)

    def _has_room(self, task_id: TaskId, one: _ForRoom, now: float) -> bool:
        if now < one.look_at:
            return False
        self._keep(task_id)
        room = self._measure_room(one.folder)
        if not room.is_enough:
            one.look_at = now + LOOK_EVERY_S
            self._warn(one)
            return False
        one.waits, one.look_at = False, now
        log.info("there is room again for %r (%d bytes are free): task %s goes on", one.folder, room.free, task_id)
        return True

    def _warn(self, one: _ForRoom) -> None:
        room = self._measure_room(one.folder)
        self._full.warn(
            "full",
            "the disk of %r is full: %d bytes are free, and %d are wanted. Tasks %s wait for room, and go on from "
            "their last commit then; other tasks go on meanwhile",
            one.folder,
            room.free,
            room.wanted,
            ", ".join(str(task_id) for task_id, each in sorted(self._for_room.items()) if each.waits),
        )
