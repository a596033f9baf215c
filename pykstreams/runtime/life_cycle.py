"""The states of an application, and which may follow which (``KafkaStreams.State``, 4.3.1)::

                +--------------+
        +<----- | CREATED      |
        |       +-----+--------+
        |             v
        |       +-----+--------+ <--+
        +<----- | REBALANCING  |    |
        |       +--+---+-------+ ---+--> PENDING_ERROR
        |          |   ^            |
        |          v   |            |
        |       +--+---+-------+    |
        +<----- | RUNNING      | ---+
        |       +--------------+
        v
PENDING_SHUTDOWN --> NOT_RUNNING           PENDING_ERROR --> ERROR
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

log = logging.getLogger(__name__)


class State(Enum):
    """Where an application is in its life."""

    CREATED = "created"
    REBALANCING = "rebalancing"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending_shutdown"
    NOT_RUNNING = "not_running"
    PENDING_ERROR = "pending_error"
    ERROR = "error"

    @property
    def has_not_started(self) -> bool:
        """Whether ``start`` has not been called."""
        return self is State.CREATED

    @property
    def is_running_or_rebalancing(self) -> bool:
        """Whether records are processed, or will be as soon as tasks are there."""
        return self in (State.RUNNING, State.REBALANCING)

    @property
    def is_shutting_down(self) -> bool:
        """Whether it is about to stop."""
        return self in (State.PENDING_SHUTDOWN, State.PENDING_ERROR)

    @property
    def has_completed_shutdown(self) -> bool:
        """Whether it has stopped, for good."""
        return self in (State.NOT_RUNNING, State.ERROR)

    @property
    def has_started_or_finished_shutting_down(self) -> bool:
        """Whether it stops or has stopped."""
        return self.is_shutting_down or self.has_completed_shutdown

    def is_valid_transition(self, new_state: State) -> bool:
        """Whether the state may come next.

        >>> State.CREATED.is_valid_transition(State.RUNNING)
        False
        """
        return new_state in _NEXT[self]


_NEXT: dict[State, frozenset[State]] = {
    State.CREATED: frozenset({State.REBALANCING, State.PENDING_SHUTDOWN}),
    State.REBALANCING: frozenset({State.RUNNING, State.PENDING_SHUTDOWN, State.PENDING_ERROR}),
    State.RUNNING: frozenset({State.REBALANCING, State.PENDING_SHUTDOWN, State.PENDING_ERROR}),
    State.PENDING_SHUTDOWN: frozenset({State.NOT_RUNNING}),
    State.NOT_RUNNING: frozenset(),
    State.PENDING_ERROR: frozenset({State.ERROR}),
    State.ERROR: frozenset(),
}


StateListener: TypeAlias = Callable[[State, State], None]
"""(new state, old state)"""


class LifeCycle:
    """The state of one application, for those who change it and those who wait for it; any thread may call.

    :param name: the application, as messages call it.
    """

    def __init__(self, name: str) -> None:
        self.listener: StateListener | None = None
        self._name = name
        self._changed = threading.Condition()
        self._state = State.CREATED

    @property
    def state(self) -> State:
        """Where the application is in its life."""
        return self._state

    def move(self, new: State) -> bool:
        """Changes the state if it may, and calls the listener; false otherwise. What a listener raises is logged."""
        with self._changed:
            old = self._state
            if not old.is_valid_transition(new):
                return False
            self._state = new
            self._changed.notify_all()
        log.info("application %s: %s -> %s", self._name, old.value, new.value)
        if self.listener is not None:
            try:
                self.listener(new, old)
            except Exception:
                log.exception("application %s: its state listener failed at %s -> %s", self._name, old.value, new.value)
        return True

    def wait_for(self, reached: Callable[[State], bool], timeout_s: float | None) -> bool:
        """Waits for a state; false when it was not there in time. ``None`` waits without end."""
        with self._changed:
            return self._changed.wait_for(lambda: reached(self._state), timeout_s)
