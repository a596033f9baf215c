"""Counts page views per page and minute, and says each count once: when its minute is over.

    pykstreams run examples/more/views_per_minute.py --bootstrap-servers localhost:9092

``page-views`` holds the user of each view under the page, ``views-per-minute`` gets text such as ``12:03 /home`` with
the final count (an 8-byte integer), and ``late-views`` the views that came more than ten seconds after their minute.
Time is the time of the records: a minute is over when a view of a later one has come, plus the grace of ten seconds.
"""

from datetime import timedelta

from pykstreams import BufferConfig, StreamsBuilder, Suppressed, TimeWindows, Topology, Windowed

application_id = "views-per-minute"

minutes = TimeWindows(timedelta(minutes=1), grace=timedelta(seconds=10))


def minute_and_page(windowed: Windowed[str], count: int) -> str:
    return f"{windowed.window.start_time:%H:%M} {windowed.key}"


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("page-views", str, str)
        .group_by_key()
        .windowed_by(minutes)
        .count(materialized="views-by-page", late_records_to="late-views")
        .suppress(Suppressed.until_window_closes(BufferConfig()))
        .to_stream(minute_and_page)
        .to("views-per-minute")
    )
    return builder.build()
