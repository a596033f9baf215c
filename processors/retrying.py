"""Tries the function of an operator again, later, without holding up records of other keys. Beyond Kafka Streams.

A record whose function fails for a passing reason waits in a buffer until it is due by the wall clock; later records of
its key wait behind it. What the function gives is forwarded with the record it belongs to as the current one, whenever
that is.

Invariant: the function sees the records of one key in the order in which they came, and what it gives for one of them
is forwarded before it sees the next.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar, Final

from pykstreams.core.processor import Cancellable, CurrentRecord, OperatorContext, PunctuationType
from pykstreams.core.types import Forward, Headers
from pykstreams.processors.backoff import RetryPolicy
from pykstreams.processors.process import FunctionOperator, Process
from pykstreams.processors.stores import store_of_class
from pykstreams.state.buffers.retry_buffer import UNTRIED, RetryBuffer, Trials, Waiting
from pykstreams.state.encoding.record_context import RawContext

log = logging.getLogger(__name__)

ATTEMPTS_HEADER: Final = "__streams.errors.attempts"
"""How often the function was called for a record, in digits."""
FIRST_FAILURE_HEADER: Final = "__streams.errors.first.failure"
"""When it failed first, in wall-clock ms since the epoch, in digits."""

_ONCE_MS: Final = 1
"""The interval of a punctuation that is cancelled when it runs: so much later it runs if its start has just passed."""
_TURN_MS: Final = 100
"""After which time the worker has its turn again while records wait that are due."""


@dataclass(frozen=True, slots=True)
class Retrying:
    """Lets records of ``operator`` that fail wait in the buffer ``store``, as ``policy`` says.

    An error that is not passing, and the last one of a record whose attempts are used up, goes to the processing
    exception handler, with two more headers. While ``max_waiting`` records wait the task takes no more.
    """

    operator: FunctionOperator
    policy: RetryPolicy
    store: str
    takes_back: ClassVar = True
    """Changelogs stay behind: a record that leaves the buffer is not forgotten before what came of it was delivered."""

    def build(self, context: OperatorContext) -> Process:
        buffer = store_of_class(RetryBuffer, context, self.store)
        trying = _Trying(self, context, buffer)
        context.on_init(trying.start)
        context.limit_intake(lambda: self.policy.max_waiting - len(buffer))
        return trying.process


class _Function:
    """The context of the operator: keeps what the function raised, for whoever called it."""

    def __init__(self, forward: Forward) -> None:
        self.forward = forward
        self._error: Exception | None = None

    def fail(self, error: Exception, key: object, value: object, timestamp: int, headers: Headers) -> None:
        self._error = error

    def take_error(self) -> Exception | None:
        """The error of the last call, once."""
        error, self._error = self._error, None
        return error


class _Trying:
    """The operator in one task."""

    def __init__(self, retrying: Retrying, context: OperatorContext, buffer: RetryBuffer) -> None:
        self._policy = retrying.policy
        self._context = context
        self._current: CurrentRecord = context.current
        self._buffer = buffer
        self._function = _Function(context.forward)
        self._run = retrying.operator.build(self._function)
        self._alarm: Cancellable | None = None
        self._alarm_at: int | None = None

    def start(self) -> None:
        """Finds what waits from before."""
        self._buffer.follow(self._context.metadata)
        self._set_alarm()

    def process(self, key: object, value: object, timestamp: int, headers: Headers) -> None:
        """Takes a record; runs per record."""
        buffer = self._buffer
        if len(buffer):
            try:
                if buffer.keeps(key, headers):
                    buffer.put(key, value, self._raw(timestamp, headers), UNTRIED)
                    return
            except Exception as unreadable:
                self._context.fail(unreadable, key, value, timestamp, headers)
                return
        self._run(key, value, timestamp, headers)
        error = self._function.take_error()
        if error is not None:
            self._failed_first(error, key, value, timestamp, headers)

    def _failed_first(self, error: Exception, key: object, value: object, timestamp: int, headers: Headers) -> None:
        policy, buffer = self._policy, self._buffer
        trials, used_up = policy.after_failure(UNTRIED, self._now(), buffer.next_sequence)
        final = error if used_up else self._not_passing(error)
        if final is not None:
            self._give_up(final, trials, key, value, timestamp, headers)
            return
        if not len(buffer):
            log.warning(
                "%s: a record waits to be tried again (not said again until none waits): %r", self._context.node, error
            )
        try:
            buffer.put(key, value, self._raw(timestamp, headers), trials)
        except Exception as unkept:
            unkept.__context__ = error
            self._context.fail(unkept, key, value, timestamp, headers)
            return
        self._set_alarm()

    def _punctuate(self, now: int) -> None:
        """Tries what is due; after ``_TURN_MS`` the rest has to wait for the next turn.

        So it has when the clock is set back: a record that fails by that clock would be due at once by the turn's.
        """
        self._alarm = self._alarm_at = None
        before, began = self._current.raw, self._now()
        try:
            while (waiting := self._buffer.take(min(now, began))) is not None:
                self._current.raw = waiting.raw
                self._try_again(waiting)
                if not began <= self._now() < began + _TURN_MS:
                    break
        finally:
            self._current.raw = before
            self._set_alarm(self._now() + 1)
        if not len(self._buffer):
            log.info("%s: no record waits to be tried again any more", self._context.node)

    def _try_again(self, waiting: Waiting) -> None:
        context, buffer = self._context, self._buffer
        _, timestamp, headers = waiting.raw
        try:
            key, value = buffer.record(waiting)
        except Exception as unreadable:
            context.fail(unreadable, None, None, timestamp, headers)
            buffer.remove(waiting)
            return
        try:
            self._run(key, value, timestamp, headers)
        except Exception as below:  # an error of a sink is this node's, as it would be where it is called per record
            context.fail(below, key, value, timestamp, headers)
        error = self._function.take_error()
        if error is not None:
            trials, used_up = self._policy.after_failure(waiting.trials, self._now(), waiting.sequence)
            final = error if used_up else self._not_passing(error)
            if final is None:
                buffer.put_back(waiting, trials)
                return
            self._give_up(final, trials, key, value, timestamp, headers)
        buffer.remove(waiting)

    def _not_passing(self, error: Exception) -> Exception | None:
        """The error to give up with: one that is not passing, or that of the user's function which was asked."""
        try:
            return None if self._policy.is_passing(error) else error
        except Exception as of_function:
            if of_function is not error:
                of_function.__context__ = error
            return of_function

    def _give_up(
        self, error: Exception, trials: Trials, key: object, value: object, timestamp: int, headers: Headers
    ) -> None:
        if trials.attempts > 1:
            error.add_note(f"this was attempt {trials.attempts}; the first one failed at {trials.first_failure} ms")
        attempts, first_failure = b"%d" % trials.attempts, b"%d" % trials.first_failure
        headers = (*headers, (ATTEMPTS_HEADER, attempts), (FIRST_FAILURE_HEADER, first_failure))
        self._context.fail(error, key, value, timestamp, headers)

    def _set_alarm(self, earliest: int = 0) -> None:
        """Sees to it that somebody looks when the next record is due, and not before."""
        due = self._buffer.next_due
        if due is None:
            return
        due = max(due, earliest)
        if self._alarm is not None and self._alarm_at is not None:
            if self._alarm_at <= due:
                return
            self._alarm.cancel()
        processing = self._context.processing
        now = self._now()
        self._alarm_at = max(due, now)
        self._alarm = processing.schedule(
            _ONCE_MS, PunctuationType.WALL_CLOCK_TIME, self._ring, start_time=self._alarm_at
        )

    def _ring(self, now: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._punctuate(now)

    def _now(self) -> int:
        return self._context.processing.current_system_time_ms()

    def _raw(self, timestamp: int, headers: Headers) -> RawContext:
        raw = self._current.raw
        return None if raw is None else raw[0], timestamp, headers
