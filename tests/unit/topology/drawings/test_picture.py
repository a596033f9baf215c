"""Pictures: well-formed, complete, readable, and safe with any name."""

from __future__ import annotations

import itertools
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from pykstreams import Grouped, KStream, KTable, Repartitioned, Serdes, Stores, StreamsBuilder, Topology
from pykstreams.core.processor import Processor

SVG = "{http://www.w3.org/2000/svg}"


class Step(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        """Nothing."""


def store(name: str) -> Any:
    return Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), Serdes.string(), Serdes.string())


def counting() -> Topology:
    builder = StreamsBuilder({"application.id": "app"})
    lines: KStream[str, str] = builder.stream("in")
    counted = lines.group_by(lambda k, v: v, Grouped(name="by-value")).count(materialized="counts")
    counted.to_stream().to("out")
    builder.stream(re.compile("audit.*")).to(lambda key, value, context: key)
    return builder.build()


def large() -> Topology:
    """More than forty steps in seven sub-topologies."""
    builder = StreamsBuilder({"application.id": "app"})
    orders: KStream[str, str] = builder.stream("orders")
    payments: KStream[str, str] = builder.stream("payments")
    kinds = (
        orders.filter(lambda k, v: True)
        .map_values(str)
        .split(name="kind-")
        .branch(lambda k, v: True, "big")
        .branch(lambda k, v: False, "small")
        .default_branch("rest")
    )
    big, small, rest = kinds.values()
    spent = big.group_by(lambda k, v: v, Grouped(name="by-customer")).count(materialized="spent")
    spent.to_stream().map_values(str).to("spent-by-customer")
    counted = small.select_key(lambda k, v: v).group_by_key(Grouped(name="small-orders-with-a-long-name")).count()
    totals = counted.group_by(lambda k, v: (k, v), Grouped(name="regroup")).count(materialized="totals")
    totals.to_stream().filter(lambda k, v: True).to("totals-out")
    rest.merge(payments).repartition(Repartitioned(name="all-events")).peek(print).to("audit")
    customers: KTable[str, str] = builder.table("customers", materialized="customers-store")
    customers.filter(lambda k, v: True).map_values(str).to_stream().to("customer-events")
    builder.stream(re.compile("log-.*")).map_values(str).to(lambda key, value, context: key)
    return builder.build()


def stores_shared() -> Topology:
    """One store that three steps at the same height share, one that a later step reads, three of one step."""
    topology = Topology()
    for number in "123":
        topology.add_source(f"s{number}", f"t{number}").add_processor(f"p{number}", Step, f"s{number}")
    topology.add_processor("merge", Step, "p1", "p2", "p3").add_processor("last", Step, "merge")
    topology.add_sink("sink", "out", "last")
    topology.add_state_store(store("shared"), "p1", "p2", "p3").add_state_store(store("early"), "p1", "last")
    for name in "xyz":
        topology.add_state_store(store(name), "merge")
    return topology


def circular() -> Topology:
    builder = StreamsBuilder()
    builder.stream("a").map_values(str).to("b")
    builder.stream("b").map_values(str).to("a")
    builder.stream("x").to("x")
    return builder.build()


def hostile() -> Topology:
    topology = Topology()
    topology.add_source("<script>alert(1)</script>", 'a"b&c')
    topology.add_processor("]]> & '\x00", Step, "<script>alert(1)</script>")
    topology.add_sink("日本語の名前をもつ出力ノードの例です", "x" * 90, "]]> & '\x00")
    return topology


def looking_up() -> Topology:
    """A step in the third layer reads a global store."""
    builder = StreamsBuilder()
    names = builder.global_table("names", str, str)
    counts = builder.stream("words", str, str).group_by_key().count(materialized="counts")
    counts.to_stream().join(names, lambda count, name: name, key_selector=lambda key, count: key).to("out")
    return builder.build()


ALL = pytest.mark.parametrize("build", [counting, large, stores_shared, circular, hostile, looking_up, Topology])


def picture(topology: Topology) -> ElementTree.Element:
    return ElementTree.fromstring(topology.describe().to_svg().encode())


def items(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {found.get("data-name", ""): found for found in root.iter(f"{SVG}g") if found.get("data-item")}


def box_of(shape: ElementTree.Element) -> tuple[float, float, float, float]:
    if shape.tag == f"{SVG}rect":
        x, y, width, height = (float(shape.get(name, "")) for name in ("x", "y", "width", "height"))
        return x, y, x + width, y + height
    left, top = map(float, re.findall(r"^M([\d.-]+) ([\d.-]+)A", shape.get("d", ""))[0])
    right, bottom = map(float, re.findall(r"1 ([\d.-]+) [\d.-]+V([\d.-]+)A", shape.get("d", ""))[0])
    return left, top - 6, right, bottom + 6


def boxes(root: ElementTree.Element) -> dict[str, tuple[float, float, float, float]]:
    found = {name: item.find("*[@class='shape']") for name, item in items(root).items()}
    return {name: box_of(shape) for name, shape in found.items() if shape is not None}


def panels(root: ElementTree.Element) -> dict[str, tuple[float, float, float, float]]:
    found = [group for group in root.iter(f"{SVG}g") if group.get("class") == "panel"]
    return {group.findtext(f"{SVG}text", ""): box_of(group[0]) for group in found}


@ALL
def test_picture_and_page_are_well_formed(build: Any) -> None:
    description = build().describe()

    assert ElementTree.fromstring(description.to_svg().encode()).tag == f"{SVG}svg"
    page = description.to_html()
    assert ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>")).tag.endswith("html")


@ALL
def test_page_needs_nothing_from_elsewhere(build: Any) -> None:
    page = build().describe().to_html()
    addresses = set(re.findall(r"https?://[^\"' ]+", page))

    assert addresses <= {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|img|iframe)|@import|src=", page)


def test_every_item_is_drawn_once_in_its_shape() -> None:
    kinds = {name: item.get("class") for name, item in items(picture(counting())).items()}

    assert kinds["in"] == kinds["out"] == "topic"
    assert kinds["by-value-repartition"] == "internal"
    assert kinds["/audit.*/"] == kinds["topic chosen per record"] == "dynamic"
    assert kinds["counts"] == "store"
    assert kinds["by-value"] == kinds["KSTREAM-AGGREGATE-0000000002"] == "processor"
    assert len(kinds) == 16


@ALL
def test_nothing_overlaps(build: Any) -> None:
    found = boxes(picture(build()))

    for (one, a), (other, b) in itertools.combinations(found.items(), 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (one, other)


def test_panels_hold_their_steps_and_stores_and_no_topic() -> None:
    topology = large()
    root = picture(topology)
    found, frames = boxes(root), panels(root)
    assert len(frames) == 7

    for part in topology.describe().to_dict()["subtopologies"]:
        left, top, right, bottom = frames[f"Sub-topology {part['id']}"]
        mine = {node["name"] for node in part["nodes"]} | {s for n in part["nodes"] for s in n.get("stores", ())}
        inside = {n for n, b in found.items() if left < b[0] and b[2] < right and top < b[1] and b[3] < bottom}
        assert inside == mine


@ALL
def test_every_link_ends_at_the_edges_of_its_two_items(build: Any) -> None:
    root = picture(build())
    numbers = {item.get("data-item"): name for name, item in items(root).items()}
    edges = boxes(root)
    for link in root.iter(f"{SVG}path"):
        if link.get("data-ends") is None:
            continue
        path = [float(number) for number in re.findall(r"-?[\d.]+", link.get("d", ""))]
        ends = {(path[0], path[1]), (path[-2], path[-1])}
        for name in (numbers[number] for number in str(link.get("data-ends")).split()):
            left, top, right, bottom = edges[name]
            assert any(
                left - 0.2 <= x <= right + 0.2
                and top - 0.2 <= y <= bottom + 0.2
                and (min(abs(y - top), abs(y - bottom)) < 0.2 or min(abs(x - left), abs(x - right)) < 0.2)
                for x, y in ends
            ), (name, link.attrib)


@ALL
def test_the_same_topology_always_gives_the_same_picture(build: Any) -> None:
    assert build().describe().to_svg() == build().describe().to_svg()


def test_hostile_names_are_text_and_nothing_else() -> None:
    text = hostile().describe().to_html()

    assert text.count("<script") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "]]&gt; &amp; '\N{REPLACEMENT CHARACTER}" in text


def test_long_names_are_broken_into_lines_and_stay_whole_in_the_tooltip() -> None:
    item = items(picture(large()))["small-orders-with-a-long-name-repartition"]

    assert [line.text for line in item.iter(f"{SVG}text")] == [
        "small-orders-with-a-",
        "long-name-repartition",
        "[?, str]",
    ]
    assert item.findtext(f"{SVG}title") == "small-orders-with-a-long-name-repartition\n[?, str]"
