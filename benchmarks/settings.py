"""The rules of the comparison: what every program is given alike.

Invariant: a program takes these values and none of its own defaults in their place, so that figures differ by the
program only.
"""

from __future__ import annotations

PARTITIONS = 4
"""Of each topic; every program has one worker with one thread, so it gets them all."""

KEYS = 100_000
"""Distinct keys of the events."""

COMMIT_INTERVAL_MS = 1000
"""How often state is flushed, output is waited for and offsets are committed."""

CACHE_BYTES = 64 * 1024 * 1024
"""Of the record cache of a worker, unless a workload has its own: room for all keys, so that each one is written back
once per commit, as the bare loop does."""

DEFAULT_CACHE_BYTES = 10 * 1024 * 1024
"""Kafka Streams' default: too small for all keys, so that most updates are written through."""

BATCH_BYTES = 131_072
"""The producer's ``batch.size``; with Java's 16 KB both sides spend more on sending."""

LINGER_MS = 100
"""The producer's ``linger.ms``: Kafka Streams' default. Nothing is compressed."""

AT_LEAST_ONCE, EXACTLY_ONCE = "at_least_once", "exactly_once_v2"
"""Values of ``processing.guarantee``."""
