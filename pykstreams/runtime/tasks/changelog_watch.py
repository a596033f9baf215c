"""Watches how much is written to the changelogs of an embedded cluster, which forgets what does not fit.

Only there: on a real cluster nothing is counted, and nothing is wrapped.
"""

from __future__ import annotations

import logging

from pykstreams.core.types import Headers
from pykstreams.runtime.clients.mock_cluster import PARTITION_LIMIT_BYTES
from pykstreams.state.interfaces.store import ChangelogWriter

log = logging.getLogger(__name__)

WARN_AT_BYTES = PARTITION_LIMIT_BYTES * 4 // 5
_RECORD_BYTES = 30
"""About how many bytes a record takes besides its key and value."""


class ChangelogWatch:
    """Warns once for all changelogs of a worker."""

    def __init__(self) -> None:
        self._warned = False

    def watched(self, topic: str, partition: int, write: ChangelogWriter) -> ChangelogWriter:
        """Returns the writer with a count of its bytes."""
        written = 0

        def write_and_count(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
            nonlocal written
            write(key, value, timestamp, headers)
            written += len(key) + len(value or b"") + _RECORD_BYTES
            if written > WARN_AT_BYTES and not self._warned:
                self._warned = True
                log.warning(
                    "changelog %s-%s has taken about %.1f MB, and an embedded cluster keeps about %.1f MB a partition "
                    "and drops the rest: a store restored from it would be incomplete; use a real cluster for more",
                    topic,
                    partition,
                    written / 1e6,
                    PARTITION_LIMIT_BYTES / 1e6,
                )

        return write_and_count
