"""The page on the command line names every command, option and exit code."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from pykstreams.cli.app import cli
from pykstreams.cli.exit_codes import ExitCode

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_a_command_has_a_section_and_its_options_are_explained(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)

    assert command is not None
    assert f"\n## {name}\n" in PAGE
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.opts[0] in PAGE


@pytest.mark.parametrize("code", ExitCode)
def test_an_exit_code_is_explained(code: ExitCode) -> None:
    assert f"\n| {code.value} | " in PAGE
