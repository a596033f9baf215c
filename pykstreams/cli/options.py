"""The argument and the options that several commands share, and the configuration they add up to."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.dsl.script import Script
    from pykstreams.topology.topology import Topology

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., object])

SETTINGS_HELP = """Settings are those of Kafka Streams. From strong to weak: the options of the command,
--set key=value, variables like PYKSTREAMS_COMMIT_INTERVAL_MS, --config FILE, and the script's own `config` (a
mapping) and `application_id`."""


def topology_argument(command: F) -> F:
    """Adds the TOPOLOGY argument."""
    return click.argument("topology", metavar="TOPOLOGY")(command)


def format_option(command: F) -> F:
    """Adds --format, for what is printed."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="text: to read. json: for programs.",
    )(command)


def brokers_option(command: F) -> F:
    """Adds --bootstrap-servers."""
    return click.option(
        "--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers to ask first (bootstrap.servers)."
    )(command)


def state_dir_option(command: F) -> F:
    """Adds --state-dir, for commands beside a worker."""
    return click.option(
        "--state-dir",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Folder for local state (state.dir), as the worker has it.",
    )(command)


def settings_options(command: F) -> F:
    """Adds --application-id, --set and --config."""
    for option in (
        click.option(
            "--config",
            "config_file",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Settings from a .properties or .toml file.",
        ),
        click.option(
            "--set",
            "pairs",
            metavar="KEY=VALUE",
            multiple=True,
            help="One setting, for instance --set commit.interval.ms=5000. Can be repeated.",
        ),
        click.option(
            "--application-id",
            metavar="ID",
            help="Name of the application (application.id): its consumer group, and the first part of the names of its "
            "topics. Needed here or in the settings.",
        ),
    ):
        command = option(command)
    return command


def given_options(names: Collection[str]) -> str:
    """The options of the command that were given, of those that are named, as the beginning of a sentence."""
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name in names and context.get_parameter_source(option.name) is not ParameterSource.DEFAULT
    ]
    return f"{' and '.join(given)} {'is' if len(given) == 1 else 'are'}" if given else ""


def need_application_id(config: StreamsConfig) -> None:
    """Raises a usage error when no source names the application."""
    if "application.id" not in config:
        raise click.UsageError(
            'the application has no name; give --application-id ID, or write application_id = "ID" into the script '
            "(a name must not change: offsets and state belong to it)"
        )


def combined_config(
    script: Script | None,
    *,
    config_file: Path | None,
    pairs: Sequence[str],
    options: Mapping[str, str | None],
    environment: Mapping[str, str] = os.environ,
    warns: bool = True,
    resolves: bool = False,
) -> StreamsConfig:
    """The configuration from all sources; an option that is ``None`` was not given.

    :param script: what the script says; ``None`` for commands that need none.
    :param options: settings that have an option of their own, by dotted name.
    :param warns: whether variables of the environment that name no setting are warned of.
    :param resolves: whether classes and objects that settings name are imported, for commands that need them.
    """
    from pykstreams.cli.settings import Source, combine, from_environment, from_file, from_pairs, unknown_variables

    sources = [] if script is None else [Source(script.where, script.settings)]
    if config_file is not None:
        sources.append(from_file(config_file))
    sources.append(from_environment(environment))
    for warning in unknown_variables(environment) if warns else ():
        log.warning("%s", warning)
    sources.append(from_pairs(pairs))
    given = {name: value for name, value in options.items() if value is not None}
    sources.append(Source("options", given))
    return combine(sources, resolves=resolves)


def built_topology(script: Script, config: StreamsConfig) -> Topology:
    """The topology of a script; ``ConfigError`` when steps lack serdes, which the first task would miss."""
    from pykstreams.topology.checks.missing_serdes import check_serdes

    topology = script.build(config)
    named = config if "application.id" in config else config.replace({"application.id": "unnamed"})
    check_serdes(topology.plan(named), named)
    return topology
