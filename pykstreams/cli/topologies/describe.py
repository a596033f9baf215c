"""``pykstreams describe``: a topology as text, as a drawing or as data."""

from __future__ import annotations

from pathlib import Path

import click

from pykstreams.cli.options import (
    SETTINGS_HELP,
    built_topology,
    combined_config,
    settings_options,
    topology_argument,
)


@click.command(epilog=SETTINGS_HELP)
@topology_argument
@settings_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot", "svg", "html", "json"]),
    default="text",
    show_default=True,
    help="text: as Kafka Streams prints it. mermaid, dot, svg, html: drawings. json: for programs.",
)
def describe(
    topology: str, config_file: Path | None, pairs: tuple[str, ...], application_id: str | None, form: str
) -> None:
    """Show the steps, stores and topics of a topology. Needs no Kafka.

    \b
        pykstreams describe word_count.py
        pykstreams describe shop.topology:build --format mermaid > shop.mmd
        pykstreams describe word_count.py --format html > word_count.html
    """
    from pykstreams.dsl.script import load_script

    script = load_script(topology)
    config = combined_config(script, config_file=config_file, pairs=pairs, options={"application.id": application_id})
    built = built_topology(script, config)
    description = built.describe()
    match form:
        case "mermaid":
            text = description.to_mermaid()
        case "dot":
            text = description.to_dot()
        case "svg":
            text = description.to_svg()
        case "html":
            text = description.to_html()
        case "json":
            import json

            from pykstreams.topology.changes.shape import shape_of

            named = config if "application.id" in config else config.replace({"application.id": "unnamed"})
            shape = shape_of(built.plan(named), named).as_dict()
            text = json.dumps({**description.to_dict(), "shape": shape}, indent=2)
        case _:
            text = str(description)
    click.echo(text.rstrip("\n"))
