"""Steps behind a join that makes keys of two parts, where the serdes of the parts are the defaults of the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykstreams import KGroupedStream, KTable, SessionWindows, StreamsBuilder, TimeWindows
from pykstreams.serdes import Serdes
from pykstreams.testing import TopologyTestDriver

_SETTINGS = {
    "application.id": "app",
    "bootstrap.servers": "nowhere:1",
    "default.key.serde": Serdes.string(),
    "default.value.serde": Serdes.string(),
}

Table = KTable[Any, str]


def _grouped(joined: Table) -> KGroupedStream[Any, str]:
    return joined.to_stream().filter(lambda key, value: value is not None).group_by_key()


def _in_time_windows(joined: Table, right: Table) -> None:
    _grouped(joined).windowed_by(TimeWindows(1000)).reduce(min).to_stream().to("out")


def _in_sessions(joined: Table, right: Table) -> None:
    _grouped(joined).windowed_by(SessionWindows(1000)).reduce(min).to_stream().to("out")


def _joined_on_a_foreign_key(joined: Table, right: Table) -> None:
    again = joined.join(right, lambda pair, other: f"{pair} {other}", foreign_key_extractor=lambda pair: "r")
    again.to_stream().to("out")


def _pair(one: str | None, other: str | None) -> str:
    return f"{one}-{other}"


def _full(left: Table, right: Table) -> Table:
    return left.outer_join(right, _pair, foreign_key_extractor=lambda one: one)


def _right(left: Table, right: Table) -> Table:
    return left.right_join(right, _pair, foreign_key_extractor=lambda one: one)


def _with_many_keys(left: Table, right: Table) -> Table:
    return left.join(right, _pair, foreign_keys_extractor=lambda one: [one])


@pytest.mark.parametrize("join", [_full, _right, _with_many_keys])
@pytest.mark.parametrize("step", [_in_time_windows, _in_sessions, _joined_on_a_foreign_key])
def test_keys_of_a_foreign_key_join_are_written_with_the_default_serde(
    join: Callable[[Table, Table], Table], step: Callable[[Table, Table], None]
) -> None:
    builder = StreamsBuilder()
    left: Table = builder.table("left")
    right: Table = builder.table("right")
    step(join(left, right), right)
    with TopologyTestDriver(builder.build(), _SETTINGS) as driver:
        driver.create_input_topic("right").pipe_input("r", "right", 1)
        driver.create_input_topic("left").pipe_input("l", "r", 2)
        out = driver.create_output_topic("out", Serdes.bytes().deserializer)

        keys = [key for key, value in out.read_key_values() if value is not None]
    assert b"r" in keys[-1]
    assert b"l" in keys[-1]
