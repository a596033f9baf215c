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

from enum import Enum


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
