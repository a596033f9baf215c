"""The error codes by which members and leader tell each other what went wrong."""

from __future__ import annotations

from enum import IntEnum


class AssignorError(IntEnum):
    """An error code in a subscription or an assignment; a member that receives an unknown one ends."""

    NONE = 0
    INCOMPLETE_SOURCE_TOPIC_METADATA = 1
    """The leader misses source topics."""
    VERSION_PROBING = 2
    """Sent by releases before 2.4 to members whose subscription they could not read."""
    ASSIGNMENT_ERROR = 3
    """The leader could not share out the tasks."""
    SHUTDOWN_REQUESTED = 4
    """A member asks that all members shut down, and the leader passes it on."""
