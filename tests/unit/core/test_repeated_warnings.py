"""Each cause is logged at once, and then once per interval while it lasts."""

from __future__ import annotations

import logging

import pytest

from pykstreams.core.repeated_warnings import OncePerInterval, RepeatedWarnings
from pykstreams.testing.clock import MockClock

LOG = logging.getLogger("tests.repeated_warnings")


def test_cause_that_lasts_is_logged_once_per_interval_with_the_number_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = MockClock()
    warnings = RepeatedWarnings(LOG, clock, interval_s=10)
    for _ in range(21):
        warnings.warn("orders-0", "reading %s is held up", "orders-0")
        clock.advance(1000)

    assert caplog.messages == [
        "reading orders-0 is held up",
        "reading orders-0 is held up (9 more times in the last 10 s)",
        "reading orders-0 is held up (9 more times in the last 10 s)",
    ]


def test_another_cause_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    warnings = RepeatedWarnings(LOG, MockClock(), interval_s=10)
    warnings.warn("orders-0", "orders-0")
    warnings.warn("orders-1", "orders-1")

    assert caplog.messages == ["orders-0", "orders-1"]


def test_lines_of_a_library_that_differ_in_times_and_clients_only_count_as_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = MockClock()
    thinned = OncePerInterval(clock, interval_s=10)
    LOG.addFilter(thinned)
    try:
        for client in range(5):
            LOG.error("FAIL [rdkafka#producer-%d] [thrd:x]: b:9092: Connection refused (after %dms)", client, client)
        LOG.error("FAIL [rdkafka#producer-1] [thrd:x]: c:9092: Connection refused (after 0ms)")
        clock.advance(10_000)
        LOG.error("FAIL [rdkafka#producer-1] [thrd:x]: b:9092: Connection refused (after 0ms)")
    finally:
        LOG.removeFilter(thinned)

    assert caplog.messages == [
        "FAIL [rdkafka#producer-0] [thrd:x]: b:9092: Connection refused (after 0ms)",
        "FAIL [rdkafka#producer-1] [thrd:x]: c:9092: Connection refused (after 0ms)",
        "FAIL [rdkafka#producer-1] [thrd:x]: b:9092: Connection refused (after 0ms) (4 more times in the last 10 s)",
    ]


def test_lines_of_a_library_that_differ_in_how_long_it_waits_only_count_as_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    thinned = OncePerInterval(MockClock(), interval_s=10)
    LOG.addFilter(thinned)
    try:
        for wait_s in (0.05, 0.08, 0.19):
            LOG.warning("no brokers at 127.0.0.1. Retrying in %.2f secs.", wait_s)
        LOG.warning("no brokers at 127.0.0.2. Retrying in 0.05 secs.")
    finally:
        LOG.removeFilter(thinned)

    assert caplog.messages == [
        "no brokers at 127.0.0.1. Retrying in 0.05 secs.",
        "no brokers at 127.0.0.2. Retrying in 0.05 secs.",
    ]
