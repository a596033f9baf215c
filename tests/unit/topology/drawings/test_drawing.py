"""Drawings name everything once, and keep what belongs together in one box."""

import json
import re

import pytest

from pykstreams import Grouped, KStream, StreamsBuilder, Topology
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
    assert '(["in"])' in text and '(["out"])' in text
    assert '[["by-value-repartition"]]' in text
    assert '[("counts")]' in text
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
