"""Shows how often each page was viewed in each minute, with the title of the page: a windowed table joined with one
that has no windows.

    pykstreams run examples/titled_page_views.py --bootstrap-servers localhost:9092

``page-views`` holds the user of each view under the path of the page, ``pages`` the title under the path.
``titled-page-views`` gets texts such as ``Home: 3`` under ``/home at 12:00``; a page without a title is
``untitled``. When a title changes, the texts of all minutes that were counted follow.
"""

from datetime import timedelta

from pykstreams import (
    Consumed,
    Grouped,
    Materialized,
    Produced,
    Serdes,
    StreamsBuilder,
    TimeWindows,
    Topology,
    Windowed,
)

application_id = "titled-page-views"

text = Serdes.string()
minutes = TimeWindows(timedelta(minutes=1), grace=timedelta(seconds=10))


def page_of(windowed: Windowed[str], count: int) -> str:
    return windowed.key


def page_and_minute(windowed: Windowed[str], page: str | None) -> str:
    return f"{windowed.key} at {windowed.window.start_time:%H:%M}"


def build() -> Topology:
    builder = StreamsBuilder()
    pages = builder.table("pages", Consumed(key_serde=text, value_serde=text))
    views = (
        builder.stream("page-views", Consumed(key_serde=text, value_serde=text))
        .group_by_key(Grouped(key_serde=text, value_serde=text))
        .windowed_by(minutes)
        .count(materialized=Materialized("views-by-page"))
    )
    titled = views.left_join(
        pages,
        lambda count, title: f"{title or 'untitled'}: {count}",
        mapper=page_of,
        selector=page_and_minute,
        materialized=Materialized(key_serde=text, value_serde=text),
        name="title-of-page",
    )
    titled.to_stream().to("titled-page-views", Produced(key_serde=text, value_serde=text))
    return builder.build()
