"""The record cache shared out among the threads of a process, as Kafka Streams does (``getCacheSizePerThread``)."""

from __future__ import annotations

import pytest

from pykstreams.runtime.tasks.cache_shares import CacheShares


@pytest.mark.parametrize(
    ("workers", "has_global", "share"),
    [(1, False, 100), (3, False, 33), (1, True, 50), (3, True, 25), (0, True, 100), (0, False, 100)],
)
def test_every_thread_has_the_same_share(workers: int, has_global: bool, share: int) -> None:
    shares = CacheShares(100, has_global=has_global)
    before = shares.new()
    shares.share_among(workers)
    after = shares.new()

    assert (before.max_bytes, after.max_bytes) == (share, share)


def test_a_cache_that_is_made_smaller_is_too_full_until_something_is_evicted() -> None:
    shares = CacheShares(100, has_global=False)
    cache = shares.new()
    cache.size_bytes = 60
    assert not cache.is_too_full
    shares.share_among(2)
    assert cache.is_too_full
    cache.size_bytes = 50
    assert not cache.is_too_full
