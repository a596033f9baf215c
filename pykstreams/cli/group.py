"""``pykstreams lag`` and ``pykstreams status``: the group of an application as brokers know it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from pykstreams.cli.options import (
    SETTINGS_HELP,
    brokers_option,
    combined_config,
    format_option,
    need_application_id,
    settings_options,
    topology_argument,
)

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.runtime.groups.lag_report import LagReport
    from pykstreams.runtime.groups.status import GroupStatus
    from pykstreams.topology.plan import TopologyPlan

F = TypeVar("F", bound=Callable[..., object])


class Report(Protocol):
    """An answer of one of these commands."""

    def as_dict(self) -> dict[str, object]: ...

    def lines(self) -> Iterator[str]: ...


class Looks(Protocol):
    """The cluster with the group of one application."""

    def lag(self) -> LagReport: ...

    def status(self) -> GroupStatus: ...


def _group_options(command: F) -> F:
    """Adds TOPOLOGY, the brokers, the settings, and --format."""
    command = format_option(command)
    command = settings_options(command)
    return topology_argument(brokers_option(command))


@click.command(epilog=SETTINGS_HELP)
@_group_options
def lag(
    topology: str,
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    form: str,
) -> None:
    """Tell how far an application is behind: by task, of input and repartition topics, and of standby tasks.

    What the group has committed is compared with the ends of the partitions; nobody has to run. Where nothing is
    committed, auto.offset.reset says what counts.

    \b
        pykstreams lag word_count.py --bootstrap-servers localhost:9092
        pykstreams lag word_count.py --bootstrap-servers localhost:9092 --format json
    """
    given = {"application.id": application_id, "bootstrap.servers": bootstrap_servers}
    with opened(*_loaded(topology, config_file, pairs, given)) as looks:
        _show(looks.lag(), form)


@click.command(epilog=SETTINGS_HELP)
@_group_options
def status(
    topology: str,
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    form: str,
) -> None:
    """Tell who runs an application: the members of its group, their tasks, and the tasks that nobody has.

    \b
        pykstreams status word_count.py --bootstrap-servers localhost:9092
    """
    given = {"application.id": application_id, "bootstrap.servers": bootstrap_servers}
    with opened(*_loaded(topology, config_file, pairs, given)) as looks:
        _show(looks.status(), form)


@contextmanager
def opened(plan: TopologyPlan, config: StreamsConfig) -> Iterator[Looks]:
    """Connects with the cluster, and yields what these commands ask."""
    from pykstreams.core.clock import SystemClock
    from pykstreams.runtime.clients.admin import ClusterAdmin
    from pykstreams.runtime.clients.inspection.group_tools import GroupRequests, GroupTools
    from pykstreams.runtime.groups.inspection import GroupInspection

    clock = SystemClock()
    client_id = f"{config.client_id or config.application_id}-group"
    admin = ClusterAdmin.open(config.client_supplier, config, client_id, clock)
    admin.wait_for_tools()
    requests = GroupRequests.open(config, client_id, thread=None, embedded=admin.embedded)
    group = GroupTools(requests, clock, config.request_timeout_ms / 1000)
    try:
        yield GroupInspection(plan, config, admin, group, clock)
    finally:
        group.close()


def _loaded(
    topology: str, config_file: Path | None, pairs: tuple[str, ...], given: dict[str, str | None]
) -> tuple[TopologyPlan, StreamsConfig]:
    from pykstreams.dsl.script import load_script

    script = load_script(topology)
    config = combined_config(script, config_file=config_file, pairs=pairs, options=given)
    need_application_id(config)
    if "bootstrap.servers" not in config:
        raise click.UsageError("no brokers are named; give --bootstrap-servers HOST:PORT")
    return script.build(config).plan(config), config


def _show(report: Report, form: str) -> None:
    if form == "json":
        click.echo(json.dumps(report.as_dict(), indent=2))
    else:
        for line in report.lines():
            click.echo(line)
