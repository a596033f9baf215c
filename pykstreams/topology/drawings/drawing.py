"""Drawings of a topology as text: Mermaid and Graphviz.

Both show sub-topologies and global stores as boxes; the user's topics, the application's own topics, processors and
stores each in a shape of their own, with types, functions and windows below their names. They draw from
``TopologyDescription.to_dict()``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

PlainDescription: TypeAlias = dict[str, Any]
"""A description as ``TopologyDescription.to_dict`` gives it: dicts, lists, text and numbers, as JSON has them."""

_STORE = "store:"

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
    """Something with a shape; ``box`` is the number of the box it stands in, ``None`` outside of all.

    ``details`` are lines below the label.
    """

    key: str
    label: str
    shape: Shape
    box: int | None
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    start: str
    end: str
    two_way: bool = False

    @property
    def is_look_up(self) -> bool:
        """Whether a step reads a store that is not of its sub-topology: a global one."""
        return not self.two_way and self.start.startswith(_STORE)


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
                text = "<br/>".join(map(_entities, (item.label, *item.details)))
                lines.append(indent + ids[item.key] + _MERMAID[item.shape].format(text))
        if box is not None:
            lines.append("  end")
    for edge in edges:
        arrow = "<-->" if edge.two_way else "-.->" if edge.is_look_up else "-->"
        lines.append(f"  {ids[edge.start]} {arrow} {ids[edge.end]}")
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
                label = _quoted(item.label, *item.details)
                lines.append(f"{indent}{_quoted(item.key)} [label={label}, {_DOT[item.shape]}];")
        if box is not None:
            lines.append("  }")
    for edge in edges:
        suffix = " [dir=both]" if edge.two_way else " [style=dashed]" if edge.is_look_up else ""
        lines.append(f"  {_quoted(edge.start)} -> {_quoted(edge.end)}{suffix};")
    return "\n".join([*lines, "}"]) + "\n"


def titles_of(description: PlainDescription) -> dict[int, str]:
    """The title of each box, by its number."""
    kinds = (("Sub-topology", "subtopologies"), ("Global store", "global_stores"))
    return {part["id"]: f"{title} {part['id']}" for title, kind in kinds for part in description[kind]}


def parts_of(description: PlainDescription) -> tuple[list[Item], list[Edge]]:
    items: dict[str, Item] = {}
    edges: dict[Edge, None] = {}
    looked_up: dict[Edge, None] = {}
    for part in (*description["subtopologies"], *description["global_stores"]):
        for node in part["nodes"]:
            for item, edge in _node_parts(node, part["id"], description["stores"]):
                known = items.setdefault(item.key, item)
                if item.details and not known.details:
                    items[item.key] = item
                if edge is not None:
                    edges.setdefault(edge)
            for store in node.get("global_stores", ()):
                looked_up.setdefault(Edge(_STORE + store, f"node:{node['name']}"))
    return list(items.values()), [*edges, *looked_up]


def _node_parts(node: PlainDescription, box: int, stores: PlainDescription) -> Iterator[tuple[Item, Edge | None]]:
    key, types = f"node:{node['name']}", _types(node)
    me = Item(key, node["name"], "processor", box, _step_details(node))
    yield me, None
    for topic in node.get("topics", ()):
        item = _topic(topic, types)
        yield item, Edge(item.key, key)
    if node.get("pattern") is not None:
        item = Item(f"pattern:{node['pattern']}", f"/{node['pattern']}/", "dynamic", None, types)
        yield item, Edge(item.key, key)
    for store in node.get("stores", ()):
        item = Item(_STORE + store, store, "store", box, _types(stores[store]))
        yield item, Edge(key, item.key, two_way=True)
    if node.get("topic") is not None:
        item = _topic(node["topic"], types)
        yield item, Edge(key, item.key)
    elif node.get("dynamic"):
        item = Item(f"dynamic:{node['name']}", "topic chosen per record", "dynamic", None, types)
        yield item, Edge(key, item.key)
    for child in node["successors"]:
        yield me, Edge(key, f"node:{child}")


def _topic(topic: PlainDescription, types: tuple[str, ...]) -> Item:
    shape: Shape = "internal" if topic["internal"] else "topic"
    return Item(f"topic:{topic['name']}", topic["name"], shape, None, types)


def _step_details(node: PlainDescription) -> tuple[str, ...]:
    """Functions, windows and the types of what leaves a step; those of sources and sinks stand beside their topics."""
    if node["type"] != "processor":
        return ()
    windows = (node["windows"],) if node["windows"] else ()
    return (*node["functions"], *windows, *_types(node))


def _types(part: PlainDescription) -> tuple[str, ...]:
    """The types of keys and values as one line, ``?`` for the one that is not known; nothing where none is."""
    if part["key_type"] is None and part["value_type"] is None:
        return ()
    return (f"[{part['key_type'] or '?'}, {part['value_type'] or '?'}]",)


def _entities(text: str) -> str:
    """Writes as character codes (``#``) what Mermaid would take for HTML, or for such codes."""
    return (
        text.replace("#", "#35;").replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    )


def _quoted(*lines: str) -> str:
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'
