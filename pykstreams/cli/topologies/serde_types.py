"""``pykstreams types``: what a topology reads, writes and keeps, and whether its schemas fit their subjects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
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
    from pykstreams.runtime.checks.subject_checks import SubjectCheck
    from pykstreams.serdes.registry.subject_answers import SubjectAnswer


@click.command(name="types", epilog=SETTINGS_HELP)
@topology_argument
@settings_options
@click.option(
    "--registry",
    is_flag=True,
    help="Ask the schema registries of serdes whether the schemas that would be registered fit their subjects. "
    "Registers nothing.",
)
@format_option
def types(
    topology: str,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    registry: bool,
    form: str,
) -> None:
    """List the types of keys and values of each topic and store. Needs no Kafka.

    A serde is shown where no type stands for it. Where there is none, that is said, and the exit code is 2; so it is
    with --registry where a schema does not fit its subject, or a registry cannot be asked.

    \b
        pykstreams types word_count.py
        pykstreams types shop.py --registry
    """
    from pykstreams.dsl.script import load_script
    from pykstreams.topology.checks.written_types import written_types

    script = load_script(topology)
    config = combined_config(script, config_file=config_file, pairs=pairs, options={"application.id": application_id})
    named = config if "application.id" in config else config.replace({"application.id": "unnamed"})
    plan = script.build(config).plan(named)
    found = written_types(plan, named)
    checks: list[SubjectCheck] | None = None
    if registry:
        from pykstreams.runtime.checks.subject_checks import subject_checks

        checks = subject_checks(plan, named)
    if form == "json":
        listed = [asdict(one) for one in found]
        both = {"types": listed, "subjects": [_fields(one) for one in checks or ()]}
        click.echo(json.dumps(listed if checks is None else both, indent=2))
    else:
        _print((one.kind, one.role, one.name, one.key, one.value) for one in found)
        if checks is not None:
            _print_checks(checks)
    if any(one.lacks for one in found) or any(one.answer.outcome.is_bad for one in checks or ()):
        click.get_current_context().exit(ExitCode.USAGE)


def _fields(check: SubjectCheck) -> dict[str, object]:
    """The facts of a check for programs."""
    return {
        "registry": check.registry,
        "subject": check.subject,
        "used_for": list(check.used_for),
        **asdict(check.answer),
    }


def _print_checks(checks: list[SubjectCheck]) -> None:
    if not checks:
        click.echo("no serde that writes asks a schema registry")
    for registry in dict.fromkeys(one.registry for one in checks):
        click.echo(f"registry {registry}")
        rows = (one for one in checks if one.registry == registry)
        _print(
            ("subject", one.subject, str(one.answer.outcome), ", ".join(one.used_for), "; ".join(_said(one.answer)))
            for one in rows
        )


def _said(answer: SubjectAnswer) -> Iterator[str]:
    """The parts of the line of an answer; the old schema, which registries add to their reasons, is left to JSON."""
    if answer.schema_id is not None:
        yield f"id {answer.schema_id}" if answer.version is None else f"version {answer.version}, id {answer.schema_id}"
    if answer.what:
        yield answer.what
    yield from (reason for reason in answer.reasons if not reason.startswith("{oldSchema:"))
    if answer.cure:
        yield answer.cure


def _print(rows: Iterable[tuple[str, ...]]) -> None:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
