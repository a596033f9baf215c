"""How the program ends: the exit codes, which error leads to which, and what the user reads about it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from enum import IntEnum

from pykstreams.core.errors import (
    BootstrapError,
    ClusterError,
    ConfigError,
    DeliveryError,
    LockError,
    MisconfiguredInternalTopicError,
    MissingInternalTopicsError,
    MissingSinkTopicError,
    MissingSourceTopicError,
    StreamsError,
    TaskAssignmentError,
    TopologyError,
)
from pykstreams.core.user_code.frames import user_frame
from pykstreams.dsl.script import ScriptError


class ExitCode(IntEnum):
    """The exit codes of the program; documented in ``--help`` and in docs/reference/cli.md."""

    STOPPED = 0
    UNEXPECTED = 1
    USAGE = 2
    CLUSTER = 3
    PROCESSING = 4
    LOCKED = 5
    NOTHING_THERE = 6
    NOT_KNOWN = 7


_CODES: tuple[tuple[type[Exception], ExitCode], ...] = (
    (BootstrapError, ExitCode.USAGE),
    (ConfigError, ExitCode.USAGE),
    (TopologyError, ExitCode.USAGE),
    (ScriptError, ExitCode.USAGE),
    (MissingSinkTopicError, ExitCode.USAGE),
    (MissingSourceTopicError, ExitCode.USAGE),
    (MissingInternalTopicsError, ExitCode.USAGE),
    (MisconfiguredInternalTopicError, ExitCode.USAGE),
    (TaskAssignmentError, ExitCode.USAGE),
    (ClusterError, ExitCode.CLUSTER),
    (LockError, ExitCode.LOCKED),
)

_NO_SUCH_TOPIC = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"})
_OF_THE_RECORD = frozenset(
    {
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "MSG_SIZE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "_UNKNOWN_PARTITION",
    }
)
"""Errors of records that brokers are there to refuse."""


def exit_code(error: Exception) -> ExitCode:
    """The code for an error of pykstreams that nobody handled.

    >>> exit_code(ConfigError("unknown setting")), exit_code(StreamsError("a record failed"))
    (<ExitCode.USAGE: 2>, <ExitCode.PROCESSING: 4>)
    """
    if isinstance(error, DeliveryError) and error.name in _NO_SUCH_TOPIC:  # chosen per record, or deleted meanwhile
        return ExitCode.USAGE
    if isinstance(error, DeliveryError) and error.name in _OF_THE_RECORD:
        return ExitCode.PROCESSING
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    # a task that could not be made because a setting is missing; user code that raised would be a ProcessingError
    if type(error) is StreamsError and isinstance(error.__cause__, ConfigError):
        return ExitCode.USAGE
    return ExitCode.PROCESSING


def error_lines(error: BaseException) -> Iterator[str]:
    """The text of an error for users: the error, then each cause that says more, with the place where it came from."""
    said = str(error)
    yield f"{type(error).__name__}: {said}"
    cause = error.__cause__
    while cause is not None:
        if not str(cause) or str(cause) not in said:
            said = str(cause)
            yield f"  caused by {_name(type(cause))}: {said}{_place(cause)}"
        cause = cause.__cause__


def _place(cause: BaseException) -> str:
    """The line of the user's code, else of ours, that an exception came from; a syntax error has its own."""
    if isinstance(cause, SyntaxError):
        return ""
    found = user_frame(cause) or next(iter(reversed(list(traceback.walk_tb(cause.__traceback__)))), None)
    if found is None:
        return ""
    frame, line = found
    return f" ({frame.f_code.co_filename}:{line} in {frame.f_code.co_name})"


def _name(kind: type[BaseException]) -> str:
    """The name, with its module where it says nothing alone: ``struct`` calls its error just ``error``."""
    return f"{kind.__module__}.{kind.__name__}" if kind.__name__.islower() else kind.__name__
