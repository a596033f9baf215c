"""The reasons for which operators drop records, where more than one of them has the same."""

from __future__ import annotations

from typing import Final

LATE_FOR_WINDOWS: Final = "it is late: a window that it belongs to ended longer than the grace period ago"
LATE_FOR_ORDER: Final = "it is late: a record that is newer by more than the grace has come before it"
CLOSED_WINDOW: Final = "it is late: the final result of its window has gone on"
LATE_FOR_TIME_TO_LIVE: Final = "it is late: its row would have outlived its time to live"
LATE_REASONS: Final = frozenset({LATE_FOR_WINDOWS, LATE_FOR_ORDER, CLOSED_WINDOW, LATE_FOR_TIME_TO_LIVE})
"""The reasons of records that count as late ones, too."""
NULL_KEY_TO_AGGREGATE: Final = "the key of a record to aggregate is null"
NULL_TO_AGGREGATE: Final = "the key or the value of a record to aggregate is null"
NULL_KEY_OF_ROW_TO_JOIN: Final = "the key of a row to join is null"
NULL_TABLE_KEY: Final = "the key of a table's record is null"
OUT_OF_ORDER: Final = "a change to join is older than the newest of its row"
