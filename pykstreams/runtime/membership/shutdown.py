"""Asking all members of a group to shut down, whatever language they are in (``SHUTDOWN_APPLICATION``, KIP-671).

Whoever asks is a member itself, and the leader tells all of the generation that it has joined. It does not leave at
once: a member that is slow to take up its assignment is told nothing any more when others have left meanwhile, and
joins again with whoever is left.
"""

from __future__ import annotations

from typing import Final

from pykstreams.core.clock import Clock
from pykstreams.core.errors import StreamsError
from pykstreams.runtime.membership.membership import Lost, Membership, ShutdownRequestedError
from pykstreams.runtime.topics.topic_admin import TopicLayout

_POLL_S: Final = 0.1
_HEARTBEATS: Final = 2
"""For so many heartbeats it stays when all were told, and asks again where others have joined anew: with the first one
it hears of that.
"""


def ask_all_to_shut_down(
    membership: Membership, layout: TopicLayout, clock: Clock, patience_s: float
) -> StreamsError | None:
    """Joins to ask for it, and leaves a while after the leader has told everybody; returns why that was not seen.

    :param membership: one whose introduction asks for a shutdown, of a member that takes no tasks.
    """
    until, all_were_told = clock.monotonic() + patience_s, False
    try:
        membership.start(layout, lambda _: None)
        while clock.monotonic() < until:
            try:
                change = membership.poll(_POLL_S)
            except ShutdownRequestedError:
                if not all_were_told:
                    all_were_told, until = True, clock.monotonic() + _HEARTBEATS * membership.times.heartbeat_s
                continue
            if isinstance(change, Lost):
                membership.ack(change)
    except StreamsError as error:
        return None if all_were_told else error
    finally:
        membership.close(leave=True)
    if all_were_told:
        return None
    return StreamsError(f"the leader of the group has not answered within {patience_s:g} s")
