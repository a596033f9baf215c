"""Shows how often each page was viewed in each minute, with the title of the page: a windowed table joined with one
that has no windows.

    pykstreams run examples/more/titled_page_views.py --bootstrap-servers localhost:9092

``page-views`` holds the user of each view under the path of the page, ``pages`` the title under the path.
``titled-page-views`` gets texts such as ``Home: 3`` under ``/home at 12:00``; a page without a title is
``untitled``. When a title changes, the texts of all minutes that were counted follow.
"""

from datetime import timedelta

from pykstreams import StreamsBuilder, TimeWindows, Topology, Windowed

application_id = "titled-page-views"

minutes = TimeWindows(timedelta(minutes=1), grace=timedelta(seconds=10))


def page_of(windowed: Windowed[str], count: int) -> str:
    return windowed.key


def page_and_minute(windowed: Windowed[str], page: str | None) -> str:
    return f"{windowed.key} at {windowed.window.start_time:%H:%M}"


def with_title(count: int, title: str | None) -> str:
    return f"{title or 'untitled'}: {count}"


def build() -> Topology:
    builder = StreamsBuilder()
    pages = builder.table("pages", str, str)
    views = (
        builder.stream("page-views", str, str).group_by_key().windowed_by(minutes).count(materialized="views-by-page")
    )
    titled = views.left_join(pages, with_title, mapper=page_of, selector=page_and_minute, name="title-of-page")
    titled.to_stream().to("titled-page-views")
    return builder.build()
