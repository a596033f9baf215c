"""Every command that a page names is one that there is, with arguments that it takes; and each is run, or says why not.

``tests/integration/test_commands_of_pages.py`` runs them.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pykstreams.cli.app import cli
from tests.docs.elsewhere import NOT_RUN, RUN_BY
from tests.docs.pages import ROOT, Block, Page, pages

PAGES = [page for page in pages() if "pykstreams " in page.text or page.commands]
RUN = ("pykstreams ", "curl ", "cd shop && python -m pytest", "pip install -r shop/requirements")
FILES = ("settings.toml", "shop.toml", "shop.properties", "shop-stores.toml", "offsets.json", "topology.json")


def in_text(page: Page) -> Iterator[str]:
    """The commands that a page names in its text, such as `pykstreams lag shop.py`, or without arguments."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.text, flags=re.DOTALL | re.MULTILINE)
    for command in re.findall(r"(?<!Usage: )`(pykstreams [a-z][^`]*)`", text):
        yield command.replace("\\|", "|")


def parsed(command: str) -> str:
    """Parses a command without running it; returns what is wrong with it."""
    _, *rest = shlex.split(re.split(r" (?:[|>]|&&) ", command)[0])
    found: click.Command = cli
    context: click.Context | None = None
    name: str | None = "pykstreams"
    try:
        while True:
            context = found.make_context(name, rest, context)
            if not isinstance(found, click.Group):
                return ""
            rest = [*getattr(context, "_protected_args", ()), *context.args]
            name, sub_command, rest = found.resolve_command(context, rest)
            assert sub_command is not None
            found = sub_command
    except click.exceptions.Exit:  # of --help and --version
        return ""
    except click.ClickException as error:
        return error.format_message()


def named(text: str) -> str:
    """Looks for a command, and for its options, by their names; returns what there is not."""
    _, *words = text.split()
    found: click.Command = cli
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        names = found.list_commands(click.Context(found))
        wanted = words[0].split("|")
        if not set(wanted) <= set(names):
            if "build" in names:  # a topology in the place of a command
                wanted = ["build"]
            else:
                return f"there is no command {words[0]!r}"
        words = words[1:]
        [found, *_] = [one for name in wanted if (one := found.get_command(click.Context(found), name)) is not None]
    has = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    missing = (
        {word.split("=")[0].strip("[],") for word in words if re.match(r"\[?--\w", word)}
        - has
        - {"--help", "--version"}
    )
    return f"{found.name} has no {sorted(missing)}" if missing else ""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that commands are given."""
    monkeypatch.chdir(tmp_path)
    for file in FILES:
        (tmp_path / file).touch()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_of_a_page_have_the_arguments_that_it_gives_them(page: Page) -> None:
    commands = [part for line in page.commands for part in line.split(" && ") if part.startswith("pykstreams ")]

    assert {command: wrong for command in commands if (wrong := parsed(command))} == {}
    assert {command: wrong for command in in_text(page) if (wrong := named(command))} == {}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_of_a_page_are_run_or_say_why_not(page: Page) -> None:
    if page.path not in RUN_BY:
        assert [line for line in page.commands if not line.startswith((*RUN, *NOT_RUN))] == []


def test_examples_of_the_page_of_options_are_those_of_the_helps() -> None:
    def helps(command: click.Command) -> Iterator[str]:
        yield command.help or ""
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from helps(found)

    said = Block("sh", "\n".join(helps(cli)), 1).commands
    assert [line for line in Page("docs/reference/options.md").commands if line not in said] == []


@pytest.mark.parametrize("beginning", NOT_RUN)
def test_what_is_not_run_is_on_a_page(beginning: str) -> None:
    assert any(line.startswith(beginning) for page in pages() for line in page.commands)


def test_what_is_installed_is_the_package_with_extras_that_it_has() -> None:
    extras = re.findall(
        r"^(\w+) =$", (ROOT / "setup.cfg").read_text().split("[options.extras_require]")[1], re.MULTILINE
    )
    wanted = {line.removeprefix("pip install ") for page in pages() for line in page.commands if "pip install" in line}

    for what in wanted:
        found = re.fullmatch(
            r"(?:'(?:pykstreams|\.)\[([\w,]+)\]'|\.|-r (?:shop/)?requirements(?:-dev)?\.txt|pykstreams)", what
        )
        assert found is not None, what
        assert set((found[1] or "http").split(",")) <= set(extras), what


def test_targets_of_make_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = {line.split()[1] for page in pages() for line in page.commands if line.startswith("make ")}

    assert wanted <= targets


def test_modules_that_are_run_are_there() -> None:
    wanted = {found for page in pages() for found in re.findall(r"python -m ([\w.]+)", page.text)}

    assert len(wanted) > 5
    assert [name for name in sorted(wanted) if importlib.util.find_spec(name) is None] == []
