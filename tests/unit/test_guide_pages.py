"""The code of guides runs, top to bottom, and prints what they say; what guides name in passing is there."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click
import pytest
import yaml

from pykstreams.cli.app import cli
from pykstreams.core.metrics.built_in.all_specs import ALL
from pykstreams.core.metrics.specs import each_metric
from pykstreams.core.settings.librdkafka_keys import LIBRDKAFKA_KEYS
from pykstreams.metrics.sources import exported_name

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "coming-from/faust.md",
    "coming-from/kafka-streams.md",
    "coming-from/quix.md",
    "why.md",
    "guides/debug.md",
    "guides/deployment.md",
    "guides/errors-and-dead-letters.md",
    "guides/joins.md",
    "guides/migration-from-java.md",
    "guides/naming-and-upgrades.md",
    "guides/operate.md",
    "guides/testing.md",
    "guides/time.md",
    "guides/windows.md",
)
CODE = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
"""A block of Python, and the block behind it, which holds what it prints."""

COMMANDS = re.compile(r"^```sh\n(.*?)^```$|`(pykstreams [a-z]+ [^`]*)`", re.DOTALL | re.MULTILINE)
CONFIGURATION = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")
OF_KAFKA = frozenset({"broker.rack", "message.timestamp.type", "replica.selector.class", "retention.ms"})
"""Settings of topics and brokers, which neither our page of settings nor librdkafka lists."""

METRICS = {name for group, metric, *_ in each_metric(ALL) for name in (metric, exported_name(group, metric), group)} | {
    f"{exported_name(group, metric)}_total" for group, metric, *_ in each_metric(ALL)
}


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def blocks_of(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(page), re.DOTALL | re.MULTILINE)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module for the code of a page, which annotations are looked up in."""
    made = ModuleType("page")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


@pytest.mark.parametrize("page", PAGES)
def test_code_of_the_page_prints_what_it_says(
    page: str, module: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    text = text_of(page)
    for block in CODE.finditer(text):
        # blank lines, so that a traceback tells the line of the page
        source = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        exec(compile(source, page, "exec"), module.__dict__)

        assert capsys.readouterr().out == (block[2] or "")


@pytest.mark.parametrize("page", PAGES)
def test_settings_of_the_page_are_settings(page: str) -> None:
    written = re.findall(r"[`\"]([a-z]+(?:\.[a-z]+)+)[`\"=]", text_of(page))
    named = {re.sub(r"^(?:main\.)?(?:consumer|producer)\.", "", name) for name in written}
    named = {re.sub(r"^client\.tag\..*", "client.tag.", name) for name in named}

    assert [
        name
        for name in sorted(named - LIBRDKAFKA_KEYS.keys() - OF_KAFKA)
        if f"`{name}`" not in CONFIGURATION and not is_attribute(name)
    ] == []


def is_attribute(name: str) -> bool:
    """Whether it names something in Python, or a file, rather than a setting."""
    return name.endswith((".py", ".md", ".json", ".toml", ".yaml", ".service")) or name.startswith(
        ("pykstreams.", "dataclasses.", "app.", "event.", "stream.", "windowed.")
    )


@pytest.mark.parametrize("page", PAGES)
def test_metrics_of_the_page_are_metrics(page: str) -> None:
    named = re.findall(r"`([a-z]+(?:-[a-z0-9]+)+-(?:total|rate|avg|max|min|ratio))`", text_of(page))
    named += re.findall(r"\b(kafka_streams_\w+)", text_of(page))

    assert [name for name in sorted(set(named)) if name not in METRICS] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_the_page_have_the_options_that_it_gives_them(page: str) -> None:
    for command, words in commands_of(page):
        has = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}

        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= has | {"--help"}, words


def commands_of(page: str) -> Iterator[tuple[click.Command, list[str]]]:
    """The commands that a page shows, each with its words."""
    for block, inline in COMMANDS.findall(text_of(page)):
        for line in (block or inline).replace("\\\n", " ").splitlines():
            words = re.sub(r"\s#.*", "", line).split()
            if words[:1] != ["pykstreams"]:
                continue
            command: click.Command = cli
            while isinstance(command, click.Group):
                words = words[1:]
                found = command.get_command(click.Context(command), words[0])
                assert found is not None, line
                command = found
            yield command, words


@pytest.mark.parametrize("page", PAGES)
def test_configuration_of_the_page_can_be_read(page: str) -> None:
    for text in blocks_of(page, "toml"):
        assert tomllib.loads(text)
    for text in blocks_of(page, "json"):
        assert json.loads(text)
    for text in blocks_of(page, "yaml"):
        assert list(yaml.safe_load_all(text))
    for text in blocks_of(page, "ini"):
        unit = ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(text)

        assert unit.sections()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page, "py")])
def test_programs_for_other_libraries_are_python(page: str) -> None:
    """Nothing more can be held of them without these libraries."""
    for text in blocks_of(page, "py"):
        ast.parse(text)


@pytest.mark.parametrize("page", PAGES)
def test_attributes_that_the_page_names_by_their_module_are_there(page: str) -> None:
    for module, name in re.findall(r"\"(pykstreams[\w.]*):(\w+)\"", text_of(page)):
        assert hasattr(import_module(module), name)
