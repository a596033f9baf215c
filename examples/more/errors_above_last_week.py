"""Tells of services that log far more errors than in the same minute last week: a windowed table joined with itself.

    pykstreams run examples/more/errors_above_last_week.py --bootstrap-servers localhost:9092

``logs`` holds lines such as ``ERROR disk full`` under the name of the service. Errors are counted in windows of one
minute, a new one every second, and each count is compared with that of the window one week earlier.
``alerts`` gets a text under ``service at time`` for each window whose count lies at least ``DEVIATIONS`` standard
deviations above last week's; an alert is deleted when the difference is no longer that large. Counts of independent
events scatter by the square root of what is expected, so that is the deviation; a minute without errors counts as zero,
with a deviation of one.

The *retention* of the counts must cover the shift: a window of last week is looked up in the store of the table, which
forgets windows that are older than its retention. Here it is eight days. Without that, there would be nothing to
compare with, and every burst of errors would look like the first one.
"""

from datetime import timedelta
from math import sqrt

from pykstreams import Materialized, StreamsBuilder, TimeWindows, Topology, Windowed

application_id = "errors-above-last-week"

DEVIATIONS = 3

week = timedelta(days=7)
minute_every_second = TimeWindows(timedelta(minutes=1), advance_by=timedelta(seconds=1), grace=timedelta(seconds=10))


def is_error(service: str, line: str) -> bool:
    return line.startswith("ERROR")


def same_minute_last_week(windowed: Windowed[str], count: int) -> Windowed[str]:
    return windowed.shift_left(week)


def service_and_time(windowed: Windowed[str], last_week: Windowed[str] | None) -> str:
    return f"{windowed.key} at {windowed.window.start_time:%Y-%m-%d %H:%M:%S}"


def alert(now: int, last_week: int | None) -> str | None:
    expected = last_week or 0
    deviation = sqrt(max(expected, 1))
    return f"{now} errors, {expected} last week" if now >= expected + DEVIATIONS * deviation else None


def build() -> Topology:
    builder = StreamsBuilder()
    errors = (
        builder.stream("logs", str, str)
        .filter(is_error)
        .group_by_key()
        .windowed_by(minute_every_second)
        .count(materialized=Materialized("errors-by-minute", retention=timedelta(days=8)))
    )
    alerts = errors.left_join(errors, alert, mapper=same_minute_last_week, selector=service_and_time, name="last-week")
    alerts.to_stream().to("alerts")
    return builder.build()
