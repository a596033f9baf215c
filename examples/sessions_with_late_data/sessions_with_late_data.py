"""Cuts the clicks of each visitor into visits, and says each visit once: when no click can change it any more.

    pykstreams run examples/sessions_with_late_data/sessions_with_late_data.py --bootstrap-servers localhost:9092

``clicks`` holds JSON such as ``{"page": "/cart"}`` under the visitor. A visit ends when the visitor has not clicked for
half an hour. Clicks may come up to ten minutes late, in any order: one that lies between two visits makes them one.
``visits`` gets the pages of each visit under the visitor and the time, and ``late-clicks`` the clicks that came when
their visit was said already.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from pykstreams import BufferConfig, SessionWindows, StreamsBuilder, Suppressed, Topology, Windowed

application_id = "visits"

half_an_hour = SessionWindows(timedelta(minutes=30), grace=timedelta(minutes=10))


@dataclass(frozen=True, slots=True)
class Click:
    page: str


@dataclass(frozen=True, slots=True)
class Visit:
    pages: list[str] = field(default_factory=list)


def add(visitor: str, click: Click, visit: Visit) -> Visit:
    return Visit([*visit.pages, click.page])


def merge(visitor: str, visit: Visit, later: Visit) -> Visit:
    return Visit(visit.pages + later.pages)


def visitor_and_time(windowed: Windowed[str], visit: Visit) -> str:
    return f"{windowed.key} {windowed.window.start_time:%H:%M} to {windowed.window.end_time:%H:%M}"


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("clicks", str, Click)
        .group_by_key()
        .windowed_by(half_an_hour)
        .aggregate(Visit, add, merge, materialized="visits", late_records_to="late-clicks")
        .suppress(Suppressed.until_window_closes(BufferConfig(), name="visits-that-are-over"))
        .to_stream(visitor_and_time)
        .to("visits")
    )
    return builder.build()
