"""Looks now and then for new topics that match patterns, and for partitions that were added.

The cluster is asked on a thread of its own, since a broker may be slow to answer, and the worker processes meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.topics.topic_admin import TopicLayout

log = logging.getLogger(__name__)

Start: TypeAlias = Callable[[Callable[[], None]], None]
"""Has something done, at once or later, on whatever thread."""


def on_a_thread(act: Callable[[], None]) -> None:
    """Has it done on a new thread, which keeps no process from ending."""
    threading.Thread(target=act, name="topic-check", daemon=True).start()


class TopicCheck:
    """The check of one worker, the first after ``interval_ms`` (``metadata.max.age.ms``).

    :param prepare: asks the cluster, and creates internal topics that are missing.
    :param start: has that done.
    """

    def __init__(
        self, prepare: Callable[[], TopicLayout], clock: Clock, interval_ms: int, start: Start = on_a_thread
    ) -> None:
        self._prepare = prepare
        self._clock = clock
        self._start = start
        self._interval_s = interval_ms / 1000
        self._due_at = clock.monotonic() + self._interval_s
        self._asked: tuple[TopicLayout, Future[TopicLayout]] | None = None

    def poll(self, known: TopicLayout) -> TopicLayout | None:
        """The topics as they are now; ``None`` until they were asked for, and when the cluster could not say.

        What was asked for before the group said which topics there are (``known``) is left out: it may be older.
        """
        if self._asked is None and self._clock.monotonic() >= self._due_at:
            self._ask(known)
        if self._asked is None or not self._asked[1].done():
            return None
        (before, found), self._asked = self._asked, None
        self._due_at = self._clock.monotonic() + self._interval_s
        try:
            layout = found.result()
        except ClusterError as error:
            log.warning("topics were not checked this time: %s", error)
            return None
        return layout if before is known else None

    def _ask(self, known: TopicLayout) -> None:
        found: Future[TopicLayout] = Future()
        self._asked = known, found

        def ask() -> None:
            try:
                found.set_result(self._prepare())
            except BaseException as error:
                found.set_exception(error)

        self._start(ask)
