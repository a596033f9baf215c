"""Every setting is read by some code, or only its default is taken."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from pykstreams.core.config import StreamsConfig, _Component, _Setting
from pykstreams.core.settings.keys import KEYS

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "pykstreams" / "core" / "config.py"
SETTINGS = ROOT / "pykstreams" / "core" / "settings"
OF_CLIENTS = SETTINGS / "clients.py"
"""Makes the settings of the Kafka clients, which read them."""

CALLED = frozenset(("config", "_config", "c", "StreamsConfig"))
"""The names that configurations have in code, and what makes one."""

NOT_READ: Mapping[str, str] = {
    "built.in.metrics.version": "there is one version, which is the only value that it takes",
}
"""Settings that nothing reads, and why."""

ATTRIBUTES = {name: one._name for name, one in vars(StreamsConfig).items() if isinstance(one, _Setting | _Component)}


def keys_read(tree: ast.AST, by_attribute: Mapping[str, Iterable[str]], called: frozenset[str] = CALLED) -> set[str]:
    """The settings that some code takes by attribute of a configuration, or by name."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in KEYS:
            found.add(str(node.value))
        if isinstance(node, ast.Attribute) and node.attr in by_attribute and _last_name(node.value) in called:
            found.update(by_attribute[node.attr])
    return found


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call):
        node = node.func
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def attributes_of_the_configuration() -> dict[str, set[str]]:
    """What each attribute of ``StreamsConfig`` takes; a property or method takes what the code in it does."""
    found = {name: {key} for name, key in ATTRIBUTES.items()}
    tree = ast.parse(CONFIG.read_text())
    (config,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "StreamsConfig")
    for node in config.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = keys_read(node, found, frozenset(("self",)))
    return found


def unread(sources: Iterable[str]) -> set[str]:
    """The settings that can be set and that no source reads."""
    by_attribute = attributes_of_the_configuration()
    read = {key for source in sources for key in keys_read(ast.parse(source), by_attribute)}
    return {name for name, key in KEYS.items() if not key.not_offered} - read


def sources() -> list[str]:
    files = [path for room in ("pykstreams", "processors", "serdes") for path in (ROOT / room).rglob("*.py")]
    return [
        path.read_text()
        for path in files
        if path == OF_CLIENTS or not (path == CONFIG or path.is_relative_to(SETTINGS))
    ]


def test_every_setting_is_read_somewhere() -> None:
    assert unread(sources()) == set(NOT_READ)


def test_a_setting_that_nobody_reads_is_found() -> None:
    without = [source.replace("log_summary_interval_ms", "other") for source in sources()]

    assert unread(without) - set(NOT_READ) == {"log.summary.interval.ms"}


def test_an_attribute_of_another_object_is_no_reading_of_the_setting() -> None:
    assert "poll.ms" in unread(["task.poll_ms"])
    assert "poll.ms" not in unread(["self._config.poll_ms"])


def test_a_property_reads_what_it_is_made_of() -> None:
    assert "processing.guarantee" not in unread(["config.exactly_once"])
    assert "default.value.serde" not in unread(["config.default_value_serde"])


def test_every_attribute_stands_for_a_known_setting() -> None:
    assert {name: key for name, key in ATTRIBUTES.items() if key not in KEYS} == {}


def test_every_attribute_of_a_configuration_is_a_setting_with_underscores_or_a_component() -> None:
    settings = {name: one._name for name, one in vars(StreamsConfig).items() if isinstance(one, _Setting)}

    assert {name: key for name, key in settings.items() if name != key.replace(".", "_")} == {}
