"""The example ``errors_above_last_week.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.more.errors_above_last_week import build, week
from pykstreams import Serdes, StreamsConfig
from pykstreams.testing import TopologyTestDriver

SECOND = 1000
NOW = 1_700_000_040_000  # 2023-11-14 22:14:00
LAST_WEEK = NOW - 7 * 24 * 3600 * SECOND
MINUTE = "disk at 2023-11-14 22:14:00"


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(build(), partitions=4) as driver:
        yield driver


def _log(driver: TopologyTestDriver, minute: int, lines: int, line: str = "ERROR full") -> None:
    logs = driver.create_input_topic("logs", Serdes.string(), Serdes.string())
    for number in range(lines):
        logs.pipe_input("disk", line, minute + number * SECOND)


def _alerts(driver: TopologyTestDriver) -> dict[str, str]:
    """Alerts that were written since the last call, without those that were deleted again."""
    written = driver.create_output_topic("alerts", Serdes.string(), Serdes.string()).read_key_values_to_dict()
    return {key: value for key, value in written.items() if value is not None}


def test_minute_with_as_many_errors_as_last_week_is_no_alert(driver: TopologyTestDriver) -> None:
    _log(driver, LAST_WEEK, 2)
    _log(driver, NOW, 4)

    assert MINUTE not in _alerts(driver)


def test_minute_three_deviations_above_last_week_is_an_alert(driver: TopologyTestDriver) -> None:
    _log(driver, LAST_WEEK, 4)
    _log(driver, NOW, 9)
    before = _alerts(driver)
    _log(driver, NOW, 1)

    assert MINUTE not in before
    assert _alerts(driver)[MINUTE] == "10 errors, 4 last week"


def test_minute_without_errors_last_week_counts_as_zero(driver: TopologyTestDriver) -> None:
    _log(driver, LAST_WEEK, 9, "INFO fine")
    _log(driver, NOW, 3)

    assert _alerts(driver)[MINUTE] == "3 errors, 0 last week"


def test_windows_overlap_so_that_a_burst_is_seen_whenever_it_begins(driver: TopologyTestDriver) -> None:
    _log(driver, NOW - 30 * SECOND, 3)

    assert "disk at 2023-11-14 22:13:30" in _alerts(driver)
    assert MINUTE not in _alerts(driver)


def test_counts_are_kept_for_longer_than_they_are_shifted() -> None:
    (store,) = (
        store
        for part in build().plan(StreamsConfig({"application.id": "app"})).subtopologies
        for name, store in part.stores.items()
        if name == "errors-by-minute"
    )

    assert store.retention_ms is not None
    assert store.retention_ms > week.total_seconds() * 1000
