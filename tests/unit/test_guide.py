"""The code of ``docs/guides/guide.md`` runs, top to bottom, and describes a topology that does what the page says."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver
from tests.docs.pages import Page

GUIDE = Page("docs/guides/guide.md")
MINUTE = 60_000


@pytest.fixture
def driver() -> Any:
    names = GUIDE.run()
    with TopologyTestDriver(names["builder"].build()) as driver:
        yield driver


def test_processor_of_the_guide_tells_of_silent_users(driver: TopologyTestDriver) -> None:
    text = Serdes.string()
    clicks = driver.create_input_topic("clicks", text, text)
    alerts = driver.create_output_topic("alerts", text, text)
    clicks.pipe_input("ann", "/home", MINUTE)
    clicks.pipe_input("bob", "/home", 3 * MINUTE)

    assert alerts.read_key_values() == [("ann", "silent")]


def test_late_clicks_of_the_guide_go_to_their_topic(driver: TopologyTestDriver) -> None:
    text = Serdes.string()
    clicks = driver.create_input_topic("clicks", text, text)
    late = driver.create_output_topic("late-clicks", text, text)
    clicks.pipe_input("ann", "/home", 3 * MINUTE)
    clicks.pipe_input("ann", "/late", MINUTE)

    assert late.read_key_values() == [("ann", "/late")]


def test_late_clicks_of_the_guide_are_billed_on_the_plan_of_their_time(driver: TopologyTestDriver) -> None:
    text = Serdes.string()
    plans, clicks = driver.create_input_topic("plans", text, text), driver.create_input_topic("clicks", text, text)
    billed = driver.create_output_topic("billed", text, text)
    plans.pipe_input("ann", "free", MINUTE)
    plans.pipe_input("ann", "pro", 3 * MINUTE)
    clicks.pipe_input("ann", "/new", 4 * MINUTE)
    clicks.pipe_input("ann", "/old", 2 * MINUTE)

    assert billed.read_key_values() == [("ann", "/new on pro"), ("ann", "/old on free")]
