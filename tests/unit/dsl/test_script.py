"""How a topology is named, found and built, and what is said when there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykstreams.cli.exit_codes import error_lines
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TopologyError
from pykstreams.dsl.script import ScriptError, load_script

PIPE = """
from pykstreams import StreamsBuilder

def pipe(source="in"):
    builder = StreamsBuilder()
    builder.stream(source).to("out")
    return builder
"""


@pytest.fixture(autouse=True)
def _restored_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def description(reference: str, **settings: object) -> str:
    return str(load_script(reference).build(StreamsConfig(settings)).describe())


@pytest.mark.parametrize("name", ["topology", "build", "build_topology", "builder"])
@pytest.mark.parametrize("value", ["pipe", "pipe()", "pipe().build()", "lambda: pipe().build()"])
def test_a_script_needs_no_attribute_when_it_uses_a_usual_name(tmp_path: Path, name: str, value: str) -> None:
    script = write(tmp_path, "shop_script.py", f"{PIPE}\n{name} = {value}\n")

    assert "topics: [in]" in description(script)


@pytest.mark.parametrize("value", ["pipe()", "pipe().build()"])
def test_the_only_topology_of_a_script_is_found_under_any_name(tmp_path: Path, value: str) -> None:
    script = write(tmp_path, "shop_script.py", f"{PIPE}\nshop = {value}\n")

    assert "topics: [in]" in description(script)


def test_an_attribute_of_a_script_can_be_named(tmp_path: Path) -> None:
    script = write(tmp_path, "shop_script.py", f"{PIPE}\nbuild = pipe\nother = lambda: pipe('other')\n")

    assert "topics: [other]" in description(f"{script}:other")


def test_a_module_is_found_in_the_current_folder(tmp_path: Path) -> None:
    write(tmp_path, "shop_package/__init__.py", "")
    write(tmp_path, "shop_package/topology.py", f"{PIPE}\nclass Shop:\n    build = staticmethod(pipe)\n")

    assert "topics: [in]" in description("shop_package.topology:Shop.build")


def test_the_folder_of_a_script_can_be_imported_from(tmp_path: Path) -> None:
    write(tmp_path, "jobs/shop_names.py", "SOURCE = 'orders'\n")
    script = write(
        tmp_path, "jobs/shop_script.py", f"import shop_names\n{PIPE}\nbuild = lambda: pipe(shop_names.SOURCE)\n"
    )

    assert "topics: [orders]" in description(script)


def test_a_script_may_be_called_like_a_standard_module(tmp_path: Path) -> None:
    script = write(tmp_path, "json.py", f"{PIPE}\nbuild = pipe\n")
    standard = sys.modules["json"]

    assert "topics: [in]" in description(script)
    assert sys.modules["json"] is standard


def test_a_script_is_loaded_once(tmp_path: Path) -> None:
    script = write(tmp_path, "shop_script.py", PIPE)

    assert load_script(script).module is load_script(script).module


def test_a_function_with_an_argument_gets_the_configuration(tmp_path: Path) -> None:
    script = write(tmp_path, "shop_script.py", f"{PIPE}\ndef build(config):\n    return pipe(config['app.source'])\n")

    assert "topics: [orders]" in description(script, **{"app.source": "orders"})


def test_a_function_whose_argument_is_optional_gets_none(tmp_path: Path) -> None:
    script = write(tmp_path, "shop_script.py", f"{PIPE}\nbuild = pipe\n")

    assert "topics: [in]" in description(script)


def test_a_builder_is_built_with_the_configuration(tmp_path: Path) -> None:
    script = write(
        tmp_path,
        "shop_script.py",
        "from pykstreams import StreamsBuilder\n"
        "builder = StreamsBuilder()\n"
        "builder.table('in', materialized='store').to_stream().to('out')\n",
    )
    config = StreamsConfig(application_id="shop", topology_optimization="all")

    changelogs = load_script(script).build(config).plan(config).subtopologies[0].changelogs

    assert dict(changelogs) == {"store": "in"}


def test_a_script_says_its_application_id_and_settings(tmp_path: Path) -> None:
    script = write(
        tmp_path, "shop_script.py", "application_id = 'shop'\nconfig = {'poll.ms': 5, 'application.id': 'x'}\n"
    )

    assert load_script(script).settings == {"poll.ms": 5, "application.id": "shop"}


def test_a_configuration_object_of_a_script_gives_what_was_set_in_it(tmp_path: Path) -> None:
    script = write(
        tmp_path, "shop_script.py", "from pykstreams import StreamsConfig\nconfig = StreamsConfig(poll_ms=5)\n"
    )

    assert load_script(script).settings == {"poll.ms": 5}


def test_an_attribute_called_config_that_is_no_mapping_is_ignored(tmp_path: Path) -> None:
    assert load_script(write(tmp_path, "shop_script.py", "import sys as config\n")).settings == {}


HOW = "define a function build() that returns a Topology or a StreamsBuilder, or name one as {where}:ATTRIBUTE"


@pytest.mark.parametrize(
    ("text", "attribute", "message"),
    [
        ("x = 1\n", "", f"{{where}} defines no topology; {HOW}"),
        ("x = 1\n", ":x", "{where}:x is 1; expected a Topology, a StreamsBuilder or a function that returns one"),
        ("x = 1\n", ":y", "{where} has no attribute 'y'"),
        (
            "def build():\n    return 5\n",
            "",
            "{where}:build() is 5; expected a Topology, a StreamsBuilder or a function that returns one",
        ),
        ("def build():\n    5\n", "", "{where}:build() returned nothing; end it with 'return builder.build()'"),
        (
            "def build(config, more): ...\n",
            "",
            "{where}:build() needs the arguments config, more; a function that builds a topology takes none, or the "
            "StreamsConfig",
        ),
        (
            f"{PIPE}\na = pipe()\nb = pipe()\n",
            "",
            "{where} defines several topologies (a, b); name one as {where}:ATTRIBUTE",
        ),
        ("1 / 0\n", "", "{where} raised ZeroDivisionError while it was loaded"),
        ("def build(:\n", "", "{where} raised SyntaxError while it was loaded"),
        ("def build():\n    1 / 0\n", "", "{where}:build() raised ZeroDivisionError while it built the topology"),
    ],
)
def test_a_script_without_a_topology_says_what_to_write(
    tmp_path: Path, text: str, attribute: str, message: str
) -> None:
    script = write(tmp_path, "shop_script.py", text)

    with pytest.raises(ScriptError) as caught:
        load_script(script + attribute).build(StreamsConfig())

    assert str(caught.value) == message.format(where=script)


def test_a_script_that_raises_shows_the_place(tmp_path: Path) -> None:
    script = write(tmp_path, "shop_script.py", "\n\ndef build():\n    return 1 / 0\n")

    with pytest.raises(ScriptError) as caught:
        load_script(script).build(StreamsConfig())

    assert list(error_lines(caught.value))[1] == (
        f"  caused by ZeroDivisionError: division by zero ({script}:4 in build)"
    )


def test_a_script_that_is_no_python_shows_the_line(tmp_path: Path) -> None:
    script = write(tmp_path, "shop_script.py", "def build(:\n")

    with pytest.raises(ScriptError) as caught:
        load_script(script)

    assert list(error_lines(caught.value))[1] == "  caused by SyntaxError: invalid syntax (shop_script.py, line 1)"


def test_errors_of_pykstreams_in_a_script_pass_through(tmp_path: Path) -> None:
    script = write(tmp_path, "shop_script.py", "from pykstreams import Topology\nTopology().add_source('a')\n")

    with pytest.raises(TopologyError):
        load_script(script)


def test_a_script_that_could_not_be_loaded_can_be_loaded_again(tmp_path: Path) -> None:
    script = write(tmp_path, "shop_script.py", "1 / 0\n")
    with pytest.raises(ScriptError):
        load_script(script)
    write(tmp_path, "shop_script.py", "x = 1  # now it works\n")

    assert load_script(script).module.x == 1


def test_a_script_that_is_not_there_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ScriptError) as caught:
        load_script("missing.py:build")

    assert str(caught.value) == f"there is no script 'missing.py' (looked in {str(tmp_path)!r})"


@pytest.mark.parametrize("reference", ["no_such_module:build", "no_such.module:build", "no_such_module", ":build"])
def test_a_module_that_is_not_there_says_how_topologies_are_named(tmp_path: Path, reference: str) -> None:
    with pytest.raises(ScriptError) as caught:
        load_script(reference)

    assert str(caught.value) == (
        f"there is no module {reference.removesuffix(':build')!r} (looked in {str(tmp_path)!r} and the installed "
        "packages); name a topology as module:attribute or as path.py"
    )
