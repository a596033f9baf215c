"""Drawings name everything once, and keep what belongs together in one box."""

import json
import re

import pytest

from pykstreams import Grouped, KStream, StreamsBuilder, TimeWindows, Topology
from pykstreams.topology.description import TopologyDescription


@pytest.fixture
def description() -> TopologyDescription:
    builder = StreamsBuilder({"application.id": "app"})
    lines: KStream[str, str] = builder.stream("in")
    counted = lines.group_by(lambda k, v: v, Grouped(name="by-value")).count(materialized="counts")
    counted.to_stream().to("out")
    builder.stream(re.compile('audit".*')).to(lambda key, value, context: key)
    return builder.build().describe()


def test_mermaid_tells_the_users_topics_from_internal_ones_and_stores(description: TopologyDescription) -> None:
    text = description.to_mermaid()

    assert text.startswith("flowchart LR\n")
    assert '(["in"])' in text and '(["out<br/>[?, int]"])' in text
    assert '[["by-value-repartition"]]' in text
    assert '[("counts<br/>[?, int]")]' in text
    assert text.count("subgraph") == text.count("  end") == 3


def test_every_edge_in_mermaid_joins_two_declared_items(description: TopologyDescription) -> None:
    text = description.to_mermaid()
    declared = set(re.findall(r"^ +(n\d+)[(\[]", text, re.M))
    joined = set(re.findall(r"(n\d+) <?-->", text)) | set(re.findall(r"--> (n\d+)", text))

    assert joined == declared


def test_quotes_in_names_do_not_break_the_drawings(description: TopologyDescription) -> None:
    assert "audit&quot;" in description.to_mermaid()
    assert 'audit\\"' in description.to_dot()


def test_what_mermaid_would_take_for_html_or_a_code_is_text() -> None:
    topology = Topology()
    topology.add_source("<b>#1</b> & more", "in")

    assert '["&lt;b&gt;#35;1&lt;/b&gt; &amp; more"]' in topology.to_mermaid()


def test_dot_has_a_cluster_for_each_sub_topology(description: TopologyDescription) -> None:
    text = description.to_dot()

    assert text.count("subgraph cluster_") == 3
    assert text.count("{") == text.count("}")


def test_the_description_as_values_is_plain_json(description: TopologyDescription) -> None:
    parts = json.loads(json.dumps(description.to_dict()))["subtopologies"]

    assert [part["id"] for part in parts] == [0, 1, 2]
    assert parts[1]["nodes"][0]["topics"] == [{"name": "by-value-repartition", "internal": True}]


def with_country(count: int, country: str) -> str:
    return country


def key_of(key: object, count: int) -> str:
    return str(key)


@pytest.fixture
def typed() -> TopologyDescription:
    builder = StreamsBuilder()
    countries = builder.global_table("countries", str, str, materialized="countries")
    counts = (
        builder.stream("lines", str, str).group_by_key().windowed_by(TimeWindows(60_000)).count(materialized="counts")
    )
    counts.to_stream().join(countries, with_country, key_selector=key_of, name="joined").to("out")
    return builder.build().describe()


def test_drawings_say_types_functions_and_windows(typed: TopologyDescription) -> None:
    for text, newline in ((typed.to_mermaid(), "<br/>"), (typed.to_dot(), "\\n")):
        assert f'"lines{newline}[str, str]"' in text
        assert f'"counts{newline}[str, int]"' in text
        assert f'"joined{newline}with_country{newline}key_of{newline}[Windowed[str], str]"' in text
        assert f"{newline}1 min{newline}[Windowed[str], int]" in text


def test_a_global_store_is_linked_to_the_join_that_reads_it(typed: TopologyDescription) -> None:
    ids = {name: found for found, name in re.findall(r'(n\d+)[(\[]+"(.*?)(?:<br/>|")', typed.to_mermaid())}

    assert f"  {ids['countries']} -.-> {ids['joined']}\n" in typed.to_mermaid()
    assert '  "store:countries" -> "node:joined" [style=dashed];\n' in typed.to_dot()
    assert 'class="link state looked-up"' in typed.to_svg()


def test_the_description_as_values_tells_types_functions_and_windows(typed: TopologyDescription) -> None:
    data = json.loads(json.dumps(typed.to_dict()))
    nodes = {node["name"]: node for part in data["subtopologies"] for node in part["nodes"]}

    assert data["stores"] == {
        "counts": {"key_type": "str", "value_type": "int"},
        "countries": {"key_type": "str", "value_type": "str"},
    }
    assert nodes["joined"]["functions"] == ["with_country", "key_of"]
    assert nodes["joined"]["global_stores"] == ["countries"]
    assert (nodes["joined"]["key_type"], nodes["joined"]["value_type"]) == ("Windowed[str]", "str")
    assert [node["windows"] for node in nodes.values() if node.get("windows")] == ["1 min"]


def test_what_is_not_known_of_a_stream_is_not_drawn() -> None:
    builder = StreamsBuilder()
    lines: KStream[str, str] = builder.stream("lines")
    lines.to("copies")

    assert '(["lines"])' in builder.build().to_mermaid()
