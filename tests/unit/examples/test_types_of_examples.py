"""Examples say types: what they write, and the names of it, is what they wrote while they said serdes.

``tests/golden/example_serdes.json`` was recorded from the scripts as they were then.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykstreams import StreamsConfig
from pykstreams.dsl.script import load_script
from pykstreams.topology.plan import SinkNode, SourceNode

ROOT = Path(__file__).parents[3]
RECORDED: dict[str, dict[str, object]] = json.loads((ROOT / "tests/golden/example_serdes.json").read_text())
CONFIG = StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1"})


@pytest.mark.parametrize("name", RECORDED)
def test_names_and_serdes_of_an_example_are_those_of_before(name: str) -> None:
    assert shape(name) == RECORDED[name]


def test_all_examples_but_one_name_no_serde() -> None:
    named = [path.stem for path in scripts() if "Serde" in path.read_text()]

    assert named == ["one_to_many"]


def test_what_was_recorded_is_still_there() -> None:
    assert RECORDED.keys() <= {path.stem for path in scripts()}


def scripts() -> list[Path]:
    """All scripts with a topology."""
    return [path for path in sorted((ROOT / "examples").glob("*/*.py")) if "def build(" in path.read_text()]


def script(name: str) -> Path:
    (found,) = (path for path in scripts() if path.stem == name)
    return found


def shape(name: str) -> dict[str, object]:
    """The description of an example, and the serdes of its sources, sinks and stores."""
    topology = load_script(str(script(name))).build(CONFIG)
    plan = topology.plan(CONFIG)
    found: dict[str, object] = {"describe": str(topology.describe())}
    for part in plan.subtopologies:
        for node in part.nodes.values():
            if isinstance(node, SourceNode):
                found[f"source {node.name}"] = [repr(node.key_deserializer), repr(node.value_deserializer)]
            elif isinstance(node, SinkNode):
                found[f"sink {node.name}"] = [repr(node.key_serializer), repr(node.value_serializer)]
        for store, builder in part.stores.items():
            found[f"store {store}"] = [repr(builder.key_serde), repr(builder.value_serde)]
    for one in plan.global_stores:
        found[f"global {one.store.name}"] = [repr(one.store.key_serde), repr(one.store.value_serde)]
    return found
