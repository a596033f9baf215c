"""Makes docs/reference/options.md from the commands: ``python -m scripts.options_page``.

A test compares the page with what this script gives, so run it after every change of a command.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from pykstreams.cli.app import cli

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "options.md"

_INTRODUCTION = """\
<!-- made by scripts/options_page.py; do not edit -->

# All commands and options

What the commands do, by example: [the command line](cli.md). `--help` of a command says the same as this page.
"""


def page() -> str:
    """The text of the page."""
    context = _context()
    lines = [*_prose(cli.help or ""), *_exit_codes()]
    for name in cli.list_commands(context):
        lines += _lines(context, name)
    return _INTRODUCTION + "\n" + "".join(line + "\n" for line in lines)


def _exit_codes() -> Iterator[str]:
    yield "Exit codes:"
    yield ""
    yield "| code | meaning |"
    yield "|---|---|"
    for line in (cli.epilog or "").split("\b\n")[1].splitlines():
        code, _, meaning = line.strip().partition("  ")
        yield f"| {code} | {meaning} |"


def _context() -> click.Context:
    """The context of the program itself: commands keep the help option that they make for the first one they see."""
    return click.Context(cli, info_name="pykstreams", **cli.context_settings)


def _lines(parent: click.Context, name: str) -> Iterator[str]:
    group = parent.command
    assert isinstance(group, click.Group)
    command = group.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent)
    yield ""
    yield f"## `{context.command_path}`"
    yield ""
    yield from _prose(command.help or "")
    yield f"Usage: `{' '.join([context.command_path, *command.collect_usage_pieces(context)])}`"
    if rows := [row for row in (_row(parameter, context) for parameter in command.params) if row]:
        yield ""
        yield "| option | meaning |"
        yield "|---|---|"
        yield from rows
    if isinstance(command, click.Group):
        for sub_command in command.list_commands(context):
            yield from _lines(context, sub_command)


def _row(parameter: click.Parameter, context: click.Context) -> str | None:
    if not isinstance(parameter, click.Option) or parameter.hidden:
        return None
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    takes = "" if parameter.is_flag or parameter.count else f" {_takes(parameter)}"
    text = " ".join((parameter.help or "").split()) + (" Required." if parameter.required else "")
    if parameter.multiple and "Can be repeated" not in text:
        text += " Can be repeated."
    if default := parameter.get_help_extra(context).get("default"):
        text += f" Default: `{default}`."
    return f"| {_cell(names + takes)} | {_cell(text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _takes(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "`" + "`, `".join(map(str, option.type.choices)) + "`"
    return f"`{option.make_metavar(_context())}`"


def _prose(help_text: str) -> Iterator[str]:
    """Paragraphs as they are; those that click leaves as they are, with a \\b before them, as blocks."""
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        if paragraph.startswith("\b"):
            text = inspect.cleandoc(paragraph.removeprefix("\b").strip("\n"))
            yield "```sh" if text.startswith("pykstreams ") else "```python"
            yield from text.splitlines()
            yield "```"
        else:
            yield paragraph
        yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
