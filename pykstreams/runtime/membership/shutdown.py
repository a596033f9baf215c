"""Asking all members of a group to shut down, whatever language they are in (``SHUTDOWN_APPLICATION``, KIP-671)."""

from __future__ import annotations

from pykstreams.core.clock import Clock
from pykstreams.core.errors import StreamsError
from pykstreams.runtime.membership.membership import Lost, Membership, ShutdownRequestedError
from pykstreams.runtime.topics.topic_admin import TopicLayout

_POLL_S = 0.1


def ask_all_to_shut_down(
    membership: Membership, layout: TopicLayout, clock: Clock, patience_s: float
) -> StreamsError | None:
    """Joins to ask for it, and leaves when the leader has told everybody; returns why that could not be seen.

    :param membership: one whose introduction asks for a shutdown, of a member that takes no tasks.
    """
    deadline = clock.monotonic() + patience_s
    try:
        membership.start(layout, lambda _: None)
        while clock.monotonic() < deadline:
            change = membership.poll(_POLL_S)
            if isinstance(change, Lost):
                membership.ack(change)
    except ShutdownRequestedError:
        return None
    except StreamsError as error:
        return error
    finally:
        membership.close(leave=True)
    return StreamsError(f"the leader of the group has not answered within {patience_s:g} s")
