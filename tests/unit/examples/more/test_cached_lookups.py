"""The example ``cached_lookups.py`` in the test driver."""

from __future__ import annotations

from datetime import timedelta

from examples.more.cached_lookups import NamedVisit, Visit, build
from pykstreams import Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver


def test_each_country_is_asked_for_once_a_minute() -> None:
    asked: list[str] = []

    async def look_up(country: str) -> str | None:
        asked.append(country)
        return "Netherlands" if country == "NL" else None

    with TopologyTestDriver(build(look_up)) as driver:
        visits = driver.create_input_topic("visits", Serdes.string(), JsonSerde(Visit))
        named = driver.create_output_topic("named-visits", Serdes.string(), JsonSerde(NamedVisit))
        for country in ("NL", "NL", "??", "??"):
            visits.pipe_input("ada", Visit(country))
        driver.advance_wall_clock_time(timedelta(seconds=10))
        for country in ("NL", "??"):
            visits.pipe_input("ada", Visit(country))

        assert [visit.name for visit in named.read_values()] == [*["Netherlands"] * 2, None, None, "Netherlands", None]
        assert asked == ["NL", "??", "??"]
