"""Records that are older than their changelog keeps them are told of."""

from __future__ import annotations

import pytest

from pykstreams.bulk.brokers.retention import expiring

DAY_MS = 86_400_000
TWO_DAYS = {"cleanup.policy": "compact,delete", "retention.ms": str(2 * DAY_MS)}


def test_records_older_than_the_retention_are_told_of_with_what_keeps_them() -> None:
    said = expiring("shop-days-changelog", TWO_DAYS, 100 * DAY_MS, 103 * DAY_MS)

    assert said is not None
    assert "'shop-days-changelog' keeps records for 2 days, 0:00:00 (retention.ms=172800000)" in said
    assert "begin at 1970-04-11T00:00:00+00:00" in said
    assert f"--entity-name shop-days-changelog --add-config retention.ms={5 * DAY_MS}" in said


@pytest.mark.parametrize(
    "settings",
    [
        {**TWO_DAYS, "retention.ms": str(3 * DAY_MS)},
        {**TWO_DAYS, "retention.ms": "-1"},
        {**TWO_DAYS, "cleanup.policy": "compact"},
        {"cleanup.policy": "delete"},
    ],
)
def test_nothing_is_said_where_they_are_kept(settings: dict[str, str]) -> None:
    assert expiring("shop-days-changelog", settings, 100 * DAY_MS, 103 * DAY_MS) is None
