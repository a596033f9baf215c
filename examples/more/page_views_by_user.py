"""Counts page views per user, although the views arrive keyed by page.

    pykstreams run examples/more/page_views_by_user.py --bootstrap-servers localhost:9092

``page-views`` holds JSON such as ``{"user": "ann", "page": "/home", "bot": false}``; ``views-by-user`` gets
user and count (an 8-byte integer) whenever a count changes. Views of bots are left out. A view that cannot be read
stops the worker, unless ``deserialization.exception.handler`` says to go on.
"""

from dataclasses import dataclass

from pykstreams import Grouped, StreamsBuilder, Topology

application_id = "page-views-by-user"


@dataclass(frozen=True, slots=True)
class PageView:
    user: str
    page: str
    bot: bool = False


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("page-views", str, PageView)
        .filter_not(lambda _, view: view.bot)
        .group_by(lambda _, view: view.user, Grouped(key_serde=str, name="by-user"))
        .count(materialized="views")
        .to_stream()
        .to("views-by-user")
    )
    return builder.build()
