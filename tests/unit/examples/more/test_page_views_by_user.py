"""The example ``page_views_by_user.py`` in the test driver."""

from __future__ import annotations

import pytest

from examples.more.page_views_by_user import PageView, build
from pykstreams import Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver


@pytest.mark.parametrize("partitions", [1, 3])
def test_views_are_counted_per_user_whatever_page_they_are_keyed_by(partitions: int) -> None:
    with TopologyTestDriver(build(), partitions=partitions) as driver:
        views = driver.create_input_topic("page-views", Serdes.string(), JsonSerde(PageView))
        counts = driver.create_output_topic("views-by-user", Serdes.string(), Serdes.long())
        for user, page in [("ann", "/home"), ("bob", "/home"), ("ann", "/cart"), ("ann", "/pay")]:
            views.pipe_input(page, PageView(user, page))

        assert counts.read_key_values_to_dict() == {"ann": 3, "bob": 1}


def test_views_of_bots_are_left_out() -> None:
    with TopologyTestDriver(build()) as driver:
        views = driver.create_input_topic("page-views", Serdes.string(), JsonSerde(PageView))
        counts = driver.create_output_topic("views-by-user", Serdes.string(), Serdes.long())
        views.pipe_input("/home", PageView("crawler", "/home", bot=True))

        assert counts.is_empty


def test_views_travel_by_user_through_a_topic_of_the_application() -> None:
    with TopologyTestDriver(build(), {"application.id": "shop"}) as driver:
        views = driver.create_input_topic("page-views", Serdes.string(), JsonSerde(PageView))
        views.pipe_input("/home", PageView("ann", "/home"))

        assert "shop-by-user-repartition" in driver.produced_topic_names
