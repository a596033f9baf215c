"""The words of a member, of whichever protocol, that may not go on: errors for its worker, and lines in the log."""

from __future__ import annotations

from typing import Final

from pykstreams.core.errors import ClusterError, StreamsError, TaskMigratedError
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.membership.membership import ShutdownRequestedError

SILENT_FOR_TOO_LONG: Final = "max.poll.interval.ms has passed"
JOINS_LATER: Final = "joining the group failed, and is tried again: %s"
ASKED_AGAIN: Final = "the coordinator of the group does not answer, and is asked again: %s"
NOT_TOLD: Final = "the group was not told, and finds out by its session: %s"
NOT_TOLD_OF_CLOSE: Final = (
    "the group was not told that this worker has left, so its tasks are given to others when %s: %s"
)
"""When that is, and what went wrong."""


def put_out(error: GroupError) -> TaskMigratedError:
    """The error for a request that the group refuses, because it has gone on without this member."""
    return TaskMigratedError(f"this worker is no longer in the group: {error}")


def no_member_now() -> TaskMigratedError:
    """The error for a transaction of a worker that is no member."""
    return TaskMigratedError("this worker is not in the group at the moment; a transaction of it is not fenced")


def tasks_lost() -> TaskMigratedError:
    """The error for a commit of tasks that others may have."""
    return TaskMigratedError("this worker lost its tasks; nothing may be committed for them any more")


def shutdown_requested(detail: str = "") -> ShutdownRequestedError:
    """The error for workers that another one has asked to shut down; ``detail`` is what it says of the reason."""
    return ShutdownRequestedError(
        "an instance of this application has asked all of them to shut down (its uncaught_exception_handler answered "
        f"SHUTDOWN_APPLICATION); its log says why{detail and f': {detail}'}"
    )


def join_refused(error: GroupError, *, limit: str) -> StreamsError:
    """The error for a join that is refused for a reason that both protocols know.

    :param limit: the setting of the brokers that says how many members a group may have.
    """
    if error.name == "GROUP_MAX_SIZE_REACHED":
        return ClusterError(f"the group has as many members as the brokers allow ({limit})")
    return error.as_cluster_error("joining the group")
