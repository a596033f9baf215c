"""``retry=``: what is done about a function that fails for a passing reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeAlias

from typing_extensions import TypeVar

from pykstreams.core.names import valid_name
from pykstreams.core.types import Duration, Untold, duration_ms, keep_whole_number, number
from pykstreams.dsl.options import Options
from pykstreams.dsl.place import Place
from pykstreams.dsl.serde_fields import SerdeField, key_serde_field, value_serde_field
from pykstreams.dsl.user_calls import check_function
from pykstreams.processors.backoff import Backoff, RetryPolicy
from pykstreams.processors.process import FunctionOperator
from pykstreams.processors.retrying import Retrying
from pykstreams.state.buffers.retry_buffer import retry_buffer
from pykstreams.topology.graph import Step
from pykstreams.topology.stores import GivenStore

K = TypeVar("K", default=Untold)
V = TypeVar("V", default=Untold)

Passing: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]
"""Classes of errors, or a function that says of an error whether it is passing."""


@dataclass(frozen=True, kw_only=True)
class Retry(Options, Generic[K, V]):
    """How often, and when, the function of a step is called again for a record for which it has failed.

    Meanwhile the record waits in a store with a changelog, and later records of its key wait behind it; those of other
    keys pass. Records without key have no order. When attempts are used up the processing exception handler is asked.
    Beyond Kafka Streams; see docs/guides/retries.md.

    :param max_attempts: how often the function is called for a record, the first time included; ``None``: any number.
    :param max_time: for how long after its first failure a record is tried; ``None``: for ever.
    :param retry_on: which errors are passing: a class, several, or a function of the error. Others go to the processing
        exception handler at once.
    :param backoff: how long to wait after the first failure; after each further one ``factor`` times as long.
    :param max_backoff: the longest wait.
    :param jitter: which share of a wait, from 0 to 1, is added or taken away by chance.
    :param seed: where chance begins.
    :param max_waiting: how many records of a task may wait; then it takes no more until some have left.
    :param key_serde: the serde of keys in the store; ``None``: that of the stream, or else the default.
    :param value_serde: the same of values, as they are before the step.
    """

    max_attempts: int | None = 5
    max_time: Duration | None = None
    retry_on: Passing = Exception
    backoff: Duration = timedelta(seconds=1)
    max_backoff: Duration = timedelta(minutes=1)
    factor: float = 2.0
    jitter: float = 0.2
    seed: int = 0
    max_waiting: int = 10_000
    key_serde: SerdeField[K] = key_serde_field()
    value_serde: SerdeField[V] = value_serde_field()

    def __post_init__(self) -> None:
        for measured in ("jitter", "factor"):
            object.__setattr__(self, measured, number(getattr(self, measured), measured))
        if self.seed is not None:
            keep_whole_number(self, "seed")
        if self.max_attempts is not None and keep_whole_number(self, "max_attempts") < 1:
            raise ValueError(f"max_attempts is {self.max_attempts!r}; give at least 1, or None for any number")
        if keep_whole_number(self, "max_waiting") < 1:
            raise ValueError(f"max_waiting is {self.max_waiting!r}; at least one record must be allowed to wait")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is {self.jitter!r}; it is a share of the back-off, from 0 to 1")
        if not self.factor >= 1:
            raise ValueError(f"factor is {self.factor!r}; a back-off must not get shorter: give at least 1")
        if not -(2**63) <= self.seed < 2**63:
            raise ValueError(f"seed is {self.seed!r}; give a number of 64 bits")
        initial, longest = duration_ms(self.backoff, "backoff"), duration_ms(self.max_backoff, "max_backoff")
        if not 1 <= initial <= longest:
            raise ValueError(f"backoff is {initial} ms; give at least 1 ms, and at most max_backoff, {longest} ms")
        if self.max_time is not None and duration_ms(self.max_time, "max_time") < 1:
            raise ValueError(f"max_time is {self.max_time!r}; give at least 1 ms, or None for ever")
        _test_of(self.retry_on)

    def policy(self) -> RetryPolicy:
        """The same in ms, for the operator."""
        initial, longest = duration_ms(self.backoff, "backoff"), duration_ms(self.max_backoff, "max_backoff")
        return RetryPolicy(
            _test_of(self.retry_on),
            self.max_attempts,
            None if self.max_time is None else duration_ms(self.max_time, "max_time"),
            Backoff(initial, longest, self.factor, self.jitter, self.seed),
            self.max_waiting,
        )


def retried(place: Place, name: str, operator: FunctionOperator, retry: Retry[K, V], *, named: bool) -> Step:
    """The step of that name around an operator, with its store.

    The name of the store takes no number from the counter, so that a retry renames nothing. ``named`` says that the
    user named the step.
    """
    if not isinstance(retry, Retry):
        raise TypeError(f"retry is {retry!r}; expected a Retry")
    key_serde, value_serde = retry.key_serde or place.key_serde, retry.value_serde or place.value_serde
    buffer = retry_buffer(valid_name(f"{name}-retries"), key_serde, value_serde)
    if not named:
        place.graph.implicit_names.add_store(buffer.name, logging=buffer.logging)
    return Step(name, Retrying(operator, retry.policy(), buffer.name), (GivenStore(buffer),))


def _test_of(retry_on: object) -> Callable[[Exception], bool]:
    """The function that says of an error whether it is passing; ``TypeError`` for what says nothing about errors."""
    classes = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    found = tuple(one for one in classes if isinstance(one, type) and issubclass(one, Exception))
    if found and len(found) == len(classes):
        return lambda error: isinstance(error, found)
    if callable(retry_on) and not isinstance(retry_on, type):
        check_function("Retry", "retry_on", retry_on, "error")
        return retry_on
    raise TypeError(
        f"retry_on is {retry_on!r}; expected a class of exceptions, a tuple of such classes, or a function of the "
        "exception that says whether it is passing"
    )
