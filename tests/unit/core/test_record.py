"""Records that users make."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pykstreams import FixedKeyRecord, Record

MAKERS: list[Callable[[Any], object]] = [
    lambda timestamp: Record("k", "v", timestamp),
    lambda timestamp: Record("k", "v", 0).replace(timestamp=timestamp),
    lambda timestamp: FixedKeyRecord("k", "v", 0).replace(timestamp=timestamp),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("timestamp", [datetime(2026, 1, 1, tzinfo=UTC), timedelta(hours=1), "5", None])
def test_timestamp_that_is_no_number_is_refused_with_the_cure(make: Callable[[Any], object], timestamp: object) -> None:
    with pytest.raises(TypeError) as raised:
        make(timestamp)

    assert str(raised.value) == (
        f"timestamp of a record is {timestamp!r}; expected an int of milliseconds since 1970, which is "
        "int(when.timestamp() * 1000) of a datetime"
    )


@pytest.mark.parametrize("make", MAKERS)
def test_timestamp_before_1970_is_refused(make: Callable[[Any], object]) -> None:
    with pytest.raises(ValueError, match="timestamp of a record is -1; it must not be negative"):
        make(-1)
