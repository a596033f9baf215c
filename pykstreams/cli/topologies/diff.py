"""``pykstreams diff``: what a changed topology does to an application that has run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pykstreams.cli.options import SETTINGS_HELP, combined_config, format_option, settings_options

if TYPE_CHECKING:
    from pykstreams.topology.changes.shape import TopologyShape

_PATIENCE_S: Final = 60


@click.command(epilog=SETTINGS_HELP)
@click.argument("old")
@click.argument("new")
@click.option(
    "--accept",
    "accepted",
    metavar="STORE",
    multiple=True,
    help="A store that may begin empty, or be gone. May be given more than once.",
)
@settings_options
@format_option
def diff(
    old: str,
    new: str,
    accepted: tuple[str, ...],
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    form: str,
) -> None:
    """Compare two topologies: what a change orphans, renames, reads again or breaks. Needs no Kafka.

    OLD and NEW are topology scripts, or files that 'pykstreams describe --format json' has written. The verdict is
    'safe' (exit code 0), 'needs names' or 'needs reset' (2).

    \b
        pykstreams describe shop.py --format json > shop.json
        pykstreams diff shop.json shop.py
        pykstreams diff shop.json shop.py --accept visits
    """
    from pykstreams.cli.exit_codes import ExitCode
    from pykstreams.topology.changes.change import Verdict
    from pykstreams.topology.changes.comparison import compare, verdict_of, with_accepted

    before = _shape_in_file(old) if old.endswith(".json") else _shape_elsewhere(old, config_file, pairs, application_id)
    after = shape_at(new, config_file, pairs, application_id)
    changes = with_accepted(compare(before, after), accepted)
    verdict = verdict_of(changes)
    if form == "json":
        click.echo(json.dumps({"verdict": verdict, "changes": [one.as_dict() for one in changes]}, indent=2))
    else:
        for change in changes:
            click.echo(str(change))
        click.echo(f"verdict: {verdict}")
    click.get_current_context().exit(ExitCode.STOPPED if verdict is Verdict.SAFE else ExitCode.USAGE)


def shape_at(place: str, config_file: Path | None, pairs: tuple[str, ...], application_id: str | None) -> TopologyShape:
    """The shape of a script, or the one in a file of JSON."""
    from pykstreams.dsl.script import load_script
    from pykstreams.topology.changes.shape import shape_of

    if place.endswith(".json"):
        return _shape_in_file(place)
    script = load_script(place)
    config = combined_config(script, config_file=config_file, pairs=pairs, options={"application.id": application_id})
    if "application.id" not in config:
        config = config.replace({"application.id": "unnamed"})
    return shape_of(script.build(config).plan(config), config)


def _shape_in_file(place: str) -> TopologyShape:
    from pykstreams.core.errors import TopologyError

    try:
        text = Path(place).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TopologyError(f"description {place!r} cannot be read: {error}; write it anew") from error
    return _shape_in(text, place)


def _shape_in(text: str, place: str) -> TopologyShape:
    from pykstreams.core.errors import TopologyError
    from pykstreams.topology.changes.shape import shape_from

    try:
        data = json.loads(text)
    except ValueError as error:
        raise TopologyError(f"description {place!r} cannot be read: {error}; write it anew") from error
    return shape_from(data.get("shape", data) if isinstance(data, dict) else data)


def _shape_elsewhere(
    script: str, config_file: Path | None, pairs: tuple[str, ...], application_id: str | None
) -> TopologyShape:
    """The shape of a script that is loaded in a process of its own: modules of both scripts may have one name."""
    from pykstreams.core.errors import TopologyError

    command = [sys.executable, "-m", "pykstreams", "describe", script, "--format", "json"]
    command += [] if config_file is None else ["--config", str(config_file)]
    command += [part for pair in pairs for part in ("--set", pair)]
    command += [] if application_id is None else ["--application-id", application_id]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise TopologyError(f"{script!r} was not described within {_PATIENCE_S} s; describe it to a file") from error
    if done.returncode:
        raise TopologyError(f"{script!r} cannot be described; correct it:\n{done.stderr.strip()}")
    return _shape_in(done.stdout, script)
