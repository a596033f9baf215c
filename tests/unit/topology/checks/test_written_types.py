"""The types of topics and stores, as ``pykstreams types`` lists them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from click.testing import CliRunner

from pykstreams import Consumed, Grouped, KStream, Serdes, StreamsBuilder, StreamsConfig, TimeWindows
from pykstreams.cli.app import cli
from pykstreams.dsl.annotations.inference import shown_function
from pykstreams.topology.checks.written_types import WrittenType, written_types
from pykstreams.types import Int32

CONFIG = StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1"})


@dataclass(frozen=True)
class CustomerId:
    name: str


class Shape:
    """A class without serde."""


def listed(builder: StreamsBuilder, config: StreamsConfig = CONFIG) -> list[WrittenType]:
    return written_types(builder.build().plan(config), config)


def customer(key: str, order: dict[str, int]) -> CustomerId:
    return CustomerId(key)


def shape(order: dict[str, int]) -> Shape:
    return Shape()


def test_topics_and_stores_have_the_types_of_what_is_in_them() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", str, dict[str, int])
    orders.group_by(customer).windowed_by(TimeWindows(5)).count(materialized="counts").to_stream().to("out")

    assert listed(builder) == [
        WrittenType("topic", "read", "orders", "str", "dict[str, int]"),
        WrittenType("topic", "written", "app-counts-repartition", "CustomerId", "dict[str, int]"),
        WrittenType("topic", "read", "app-counts-repartition", "CustomerId", "dict[str, int]"),
        WrittenType("topic", "written", "out", "Windowed[CustomerId]", "int"),
        WrittenType("store", "kept", "counts", "CustomerId", "int"),
    ]


def test_changes_of_grouped_tables_are_told_as_such() -> None:
    builder = StreamsBuilder()
    table = builder.table("orders", str, int)
    table.group_by(lambda key, value: (key, value), Grouped(key_serde=str, value_serde=int, name="g")).count()

    assert WrittenType("topic", "written", "app-g-repartition", "str", "Change[int]") in listed(builder)


def test_a_type_keeps_its_name_where_another_has_the_same_serde() -> None:
    builder = StreamsBuilder()
    builder.stream("lines", str, cast("Any", str | None)).to("copies")
    builder.stream("widths", str, cast("Any", Int32)).to("numbers")

    assert [one.value for one in listed(builder)] == ["str", "str", *["Annotated[int, IntegerSerde()]"] * 2]


def test_default_serdes_and_missing_ones_are_told() -> None:
    builder = StreamsBuilder()
    orders: KStream[int, dict[str, int]] = builder.stream("orders", Consumed(value_serde=dict[str, int]))
    orders.map_values(shape).to("shapes")
    config = StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1", "default.key.serde": Serdes.long()})

    source, sink = listed(builder, config)

    assert (source.key, source.lacks) == ("int", False)
    assert sink.value.startswith(f"none: {shown_function(shape)} is annotated, but there is no serde for Shape")
    assert sink.lacks


def test_the_command_lists_them(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "from pykstreams import StreamsBuilder\n"
        "builder = StreamsBuilder()\n"
        "builder.stream('orders', str, list[int]).to('copies')\n"
    )

    result = CliRunner().invoke(cli, ["types", str(script)])
    as_json = CliRunner().invoke(cli, ["types", str(script), "--format", "json"])

    assert result.output.splitlines() == [
        "topic  read     orders  str  list[int]",
        "topic  written  copies  str  list[int]",
    ]
    assert result.exit_code == 0
    assert [one["name"] for one in json.loads(as_json.output)] == ["orders", "copies"]


def test_a_missing_serde_makes_the_command_end_with_2(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "from pykstreams import StreamsBuilder\nbuilder = StreamsBuilder()\nbuilder.stream('orders').to('copies')\n"
    )

    result = CliRunner().invoke(cli, ["types", str(script)])

    assert result.exit_code == 2
    assert result.output.splitlines()[0] == "topic  read     orders  none  none"
