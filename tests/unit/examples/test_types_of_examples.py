"""Examples say types: what they write, and the names of it, is what they wrote while they said serdes.

``tests/golden/example_serdes.json`` and ``example_bytes.json`` were recorded from the scripts as they were then.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from examples.running import examples, written_bytes
from pykstreams import StreamsConfig
from pykstreams.dsl.script import load_script
from pykstreams.testing import ProducedRecord
from pykstreams.topology.plan import SinkNode, SourceNode

ROOT = Path(__file__).parents[3]
RECORDED: dict[str, dict[str, object]] = json.loads((ROOT / "tests/golden/example_serdes.json").read_text())
BYTES: dict[str, dict[str, str]] = json.loads((ROOT / "tests/golden/example_bytes.json").read_text())
CONFIG = StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1"})


@pytest.mark.parametrize("name", RECORDED)
def test_names_and_serdes_of_an_example_are_those_of_before(name: str) -> None:
    assert shape(name) == RECORDED[name]


@pytest.mark.parametrize("name", BYTES)
def test_topics_of_an_example_have_the_bytes_of_before(name: str) -> None:
    """For the records of its folder: those for others, those of changelogs and those in between."""
    assert digests(written_bytes(examples()[name])) == BYTES[name]


def test_all_examples_but_one_name_no_serde() -> None:
    named = [path.stem for path in scripts() if "Serde" in path.read_text()]

    assert named == ["one_to_many"]


def test_what_was_recorded_is_still_there() -> None:
    assert RECORDED.keys() <= {path.stem for path in scripts()}


def digests(written: list[ProducedRecord]) -> dict[str, str]:
    """A digest of the keys, values and timestamps of each topic, in their order."""
    found = {record.topic: hashlib.sha256() for record in written}
    for record in written:
        found[record.topic].update(repr((record.key, record.value, record.timestamp)).encode())
    return {topic: digest.hexdigest() for topic, digest in sorted(found.items())}


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
