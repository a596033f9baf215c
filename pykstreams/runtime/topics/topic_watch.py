"""Looks now and then whether the topics of an application are still there, which reading and writing notice late.

It has a thread of its own, since a broker may be slow to answer. A broker that has just started may not know of all
topics, so one that is missing is looked for once more before it is reported.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from pykstreams.core.errors import ClusterError, MissingInternalTopicsError, MissingSourceTopicError

log = logging.getLogger(__name__)

LOOK_S: Final = 30.0
"""How often the cluster is asked for its topics."""

CONFIRM_S: Final = 10.0
"""After how long it is asked again for those that were missing."""


class TopicWatch:
    """The watch of one worker.

    :param look: asks the cluster, and raises ``MissingSourceTopicError`` or ``MissingInternalTopicsError``.
    """

    def __init__(self, name: str, look: Callable[[], None]) -> None:
        self._look = look
        self._in_doubt = False
        self._failure: MissingSourceTopicError | MissingInternalTopicsError | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread when the cluster has answered; waits for nothing."""
        self._stopping.set()

    def check(self) -> None:
        """Raises what was found to be missing."""
        if self._failure is not None:
            raise self._failure

    def missing(self) -> MissingSourceTopicError | MissingInternalTopicsError | None:
        """Asks once for topics that are gone, for a worker that ends because brokers do not know one."""
        if self._failure is None:
            try:
                self._look()
            except (MissingSourceTopicError, MissingInternalTopicsError) as error:
                return error
            except ClusterError as error:
                log.debug("whether topics are missing is not known: %s", error)
        return self._failure

    def look(self) -> float:
        """Asks once; returns the seconds until the next time."""
        try:
            self._look()
        except (MissingSourceTopicError, MissingInternalTopicsError) as error:
            if self._in_doubt:
                self._failure = error
            else:
                log.warning("%s (looking again in %g s)", error, CONFIRM_S)
            self._in_doubt = True
            return CONFIRM_S
        except ClusterError as error:  # reported by whoever needs the cluster
            log.debug("the topics were not looked at this time: %s", error)
            self._in_doubt = False  # the next answer may come from a broker that has just started, too
            return LOOK_S
        self._in_doubt = False
        return LOOK_S

    def _run(self) -> None:
        pause = LOOK_S
        while self._failure is None and not self._stopping.wait(pause):
            pause = self.look()
