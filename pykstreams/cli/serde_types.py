"""``pykstreams types``: what a topology reads, writes and keeps."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykstreams.cli.exit_codes import ExitCode
from pykstreams.cli.options import (
    SETTINGS_HELP,
    combined_config,
    format_option,
    settings_options,
    topology_argument,
)

if TYPE_CHECKING:
    from pykstreams.topology.written_types import WrittenType


@click.command(name="types", epilog=SETTINGS_HELP)
@topology_argument
@settings_options
@format_option
def types(
    topology: str, config_file: Path | None, pairs: tuple[str, ...], application_id: str | None, form: str
) -> None:
    """List the types of keys and values of each topic and store. Needs no Kafka.

    A serde is shown where no type stands for it. Where there is none, that is said, and the exit code is 2.

    \b
        pykstreams types word_count.py
    """
    from pykstreams.dsl.script import load_script
    from pykstreams.topology.written_types import written_types

    script = load_script(topology)
    config = combined_config(script, config_file=config_file, pairs=pairs, options={"application.id": application_id})
    named = config if "application.id" in config else config.replace({"application.id": "unnamed"})
    found = written_types(script.build(config).plan(named), named)
    if form == "json":
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
    else:
        _print(found)
    if any(one.lacks for one in found):
        click.get_current_context().exit(ExitCode.USAGE)


def _print(found: list[WrittenType]) -> None:
    rows = [(one.kind, one.role, one.name, one.key, one.value) for one in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
