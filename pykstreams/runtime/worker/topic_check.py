"""Looks now and then for new topics that match patterns, and for partitions that were added."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.topics.topic_admin import TopicLayout

log = logging.getLogger(__name__)


class TopicCheck:
    """The check of one worker, the first after ``interval_ms`` (``metadata.max.age.ms``).

    :param prepare: asks the cluster, and creates internal topics that are missing.
    """

    def __init__(self, prepare: Callable[[], TopicLayout], clock: Clock, interval_ms: int) -> None:
        self._prepare = prepare
        self._clock = clock
        self._interval_s = interval_ms / 1000
        self._due_at = clock.monotonic() + self._interval_s

    def poll(self) -> TopicLayout | None:
        """The topics as they are now; ``None`` until it is time, and when the cluster could not say."""
        now = self._clock.monotonic()
        if now < self._due_at:
            return None
        self._due_at = now + self._interval_s
        try:
            return self._prepare()
        except ClusterError as error:
            log.warning("topics were not checked this time: %s", error)
            return None
