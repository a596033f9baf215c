"""The command group: loads a command when it is asked for, and turns errors into messages and exit codes."""

from __future__ import annotations

import importlib
import logging

import click

from pykstreams._version import __version__
from pykstreams.core.errors import SerializationError, StreamsError

_COMMANDS = {
    "backfill": "pykstreams.cli.jobs.backfill:backfill",
    "bootstrap": "pykstreams.cli.jobs.bootstrap:bootstrap",
    "check": "pykstreams.cli.topologies.check:check",
    "describe": "pykstreams.cli.topologies.describe:describe",
    "diff": "pykstreams.cli.topologies.diff:diff",
    "dlq": "pykstreams.cli.dead_letters.dlq:dlq",
    "init": "pykstreams.cli.project.init:init",
    "lag": "pykstreams.cli.group:lag",
    "reset": "pykstreams.cli.reset:reset",
    "run": "pykstreams.cli.workers.run:run",
    "state": "pykstreams.cli.stores.state:state",
    "status": "pykstreams.cli.group:status",
    "top": "pykstreams.cli.live.top:top",
    "topics": "pykstreams.cli.topics:topics",
    "types": "pykstreams.cli.topologies.serde_types:types",
}

_HELP = """Kafka Streams for Python.

A topology script is a Python file that says what happens to the records of Kafka topics:

\b
    # word_count.py
    from pykstreams import StreamsBuilder
    application_id = "word-count"
    def words(line: str) -> list[str]:
        return line.split()
    def itself(key: str, word: str) -> str:
        return word
    def build():
        builder = StreamsBuilder()
        (builder.stream("lines", str, str)
            .flat_map_values(words)
            .group_by(itself)
            .count()
            .to_stream()
            .to("word-counts"))
        return builder

Look at it, see which topics it makes (those of "lines" and "word-counts" are yours), and run it:

\b
    pykstreams describe word_count.py
    pykstreams topics word_count.py
    pykstreams check word_count.py --bootstrap-servers localhost:9092
    pykstreams run word_count.py --bootstrap-servers localhost:9092
    pykstreams run word_count.py --embedded        # no Kafka needed

A topology is named path.py, path.py:attribute or module:attribute. The attribute is a Topology, a
StreamsBuilder, or a function that returns one; the function may take the configuration as its only argument.
In a file it may be left out: then topology, build, build_topology and builder are tried.
"""

_EPILOG = """Exit codes:

\b
    0  stopped cleanly
    1  an unexpected error: please report it
    2  usage, settings, script or topics are wrong
    3  the brokers cannot be reached, or refuse what the application wants
    4  a record could not be processed, or the brokers refuse it
    5  the state of a task is used by another process
    6  nothing is there for the key of 'state get'
    7  whether something is there for it is not known: the changelog may have more
"""


class _Commands(click.Group):
    """Imports the module of a command when the command is looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (StreamsError, SerializationError) as error:
            from pykstreams.cli.exit_codes import error_lines, exit_code
            from pykstreams.cli.logs import log, writes_json

            lines = list(error_lines(error))
            if writes_json():
                log.error("%s", "\n".join(lines), exc_info=error if log.isEnabledFor(logging.DEBUG) else None)
            else:
                click.echo("\n".join(lines), err=True)
            ctx.exit(exit_code(error))


@click.group(cls=_Commands, help=_HELP, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="pykstreams", message="%(prog)s %(version)s")
def cli() -> None:
    """Holds the commands."""
