"""Drawings of a topology as text: Mermaid and Graphviz.

Both show sub-topologies and global stores as boxes; the user's topics, the application's own topics, processors and
stores each in a shape of their own. They draw from ``TopologyDescription.to_dict()``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

PlainDescription: TypeAlias = dict[str, Any]
"""A description as ``TopologyDescription.to_dict`` gives it: dicts, lists, text and numbers, as JSON has them."""

Shape = Literal["topic", "internal", "processor", "store", "dynamic"]

_MERMAID = {
    "topic": '(["{}"])',
    "internal": '[["{}"]]',
    "processor": '["{}"]',
    "store": '[("{}")]',
    "dynamic": '(["{}"])',
}
_DOT = {
    "topic": "shape=ellipse",
    "internal": "shape=ellipse, style=dashed",
    "processor": "shape=box",
    "store": "shape=cylinder",
    "dynamic": "shape=ellipse, style=dotted",
}


@dataclass(frozen=True, slots=True)
class Item:
    """Something with a shape; ``box`` is the number of the box it stands in, ``None`` outside of all."""

    key: str
    label: str
    shape: Shape
    box: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    start: str
    end: str
    two_way: bool = False


def mermaid(description: PlainDescription) -> str:
    """A Mermaid flowchart from left to right."""
    items, edges = parts_of(description)
    titles = titles_of(description)
    ids = {item.key: f"n{i}" for i, item in enumerate(items)}
    lines = ["flowchart LR"]
    for box in [None, *sorted({item.box for item in items if item.box is not None})]:
        if box is not None:
            lines.append(f'  subgraph s{box}["{titles[box]}"]')
        indent = "  " if box is None else "    "
        for item in items:
            if item.box == box:
                lines.append(indent + ids[item.key] + _MERMAID[item.shape].format(_entities(item.label)))
        if box is not None:
            lines.append("  end")
    lines += [f"  {ids[edge.start]} {'<-->' if edge.two_way else '-->'} {ids[edge.end]}" for edge in edges]
    return "\n".join(lines) + "\n"


def dot(description: PlainDescription) -> str:
    """A Graphviz digraph from left to right."""
    items, edges = parts_of(description)
    titles = titles_of(description)
    lines = ["digraph topology {", "  rankdir=LR;"]
    for box in [None, *sorted({item.box for item in items if item.box is not None})]:
        if box is not None:
            lines += [f"  subgraph cluster_{box} {{", f'    label="{titles[box]}";']
        indent = "  " if box is None else "    "
        for item in items:
            if item.box == box:
                lines.append(f"{indent}{_quoted(item.key)} [label={_quoted(item.label)}, {_DOT[item.shape]}];")
        if box is not None:
            lines.append("  }")
    for edge in edges:
        suffix = " [dir=both]" if edge.two_way else ""
        lines.append(f"  {_quoted(edge.start)} -> {_quoted(edge.end)}{suffix};")
    return "\n".join([*lines, "}"]) + "\n"


def titles_of(description: PlainDescription) -> dict[int, str]:
    """The title of each box, by its number."""
    kinds = (("Sub-topology", "subtopologies"), ("Global store", "global_stores"))
    return {part["id"]: f"{title} {part['id']}" for title, kind in kinds for part in description[kind]}


def parts_of(description: PlainDescription) -> tuple[list[Item], list[Edge]]:
    items: dict[str, Item] = {}
    edges: dict[Edge, None] = {}
    for part in (*description["subtopologies"], *description["global_stores"]):
        for node in part["nodes"]:
            for item, edge in _node_parts(node, part["id"]):
                items.setdefault(item.key, item)
                if edge is not None:
                    edges.setdefault(edge)
    return list(items.values()), list(edges)


def _node_parts(node: PlainDescription, box: int) -> Iterator[tuple[Item, Edge | None]]:
    key = f"node:{node['name']}"
    me = Item(key, node["name"], "processor", box)
    yield me, None
    for topic in node.get("topics", ()):
        item = _topic(topic)
        yield item, Edge(item.key, key)
    if node.get("pattern") is not None:
        item = Item(f"pattern:{node['pattern']}", f"/{node['pattern']}/", "dynamic", None)
        yield item, Edge(item.key, key)
    for store in node.get("stores", ()):
        item = Item(f"store:{store}", store, "store", box)
        yield item, Edge(key, item.key, two_way=True)
    if node.get("topic") is not None:
        item = _topic(node["topic"])
        yield item, Edge(key, item.key)
    elif node.get("dynamic"):
        item = Item(f"dynamic:{node['name']}", "topic chosen per record", "dynamic", None)
        yield item, Edge(key, item.key)
    for child in node["successors"]:
        yield me, Edge(key, f"node:{child}")


def _topic(topic: PlainDescription) -> Item:
    shape: Shape = "internal" if topic["internal"] else "topic"
    return Item(f"topic:{topic['name']}", topic["name"], shape, None)


def _entities(text: str) -> str:
    """Writes as character codes (``#``) what Mermaid would take for HTML, or for such codes."""
    return (
        text.replace("#", "#35;").replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
