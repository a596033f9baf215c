"""``pykstreams reset``: begins an application anew, as ``kafka-streams-application-reset.sh`` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykstreams.cli.options import (
    SETTINGS_HELP,
    brokers_option,
    combined_config,
    need_application_id,
    settings_options,
    state_dir_option,
    topology_argument,
)
from pykstreams.cli.stores.state import moment

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.runtime.reset.reset import Reset
    from pykstreams.runtime.reset.targets import Target
    from pykstreams.topology.plan import TopologyPlan


@click.command(epilog=SETTINGS_HELP)
@topology_argument
@brokers_option
@settings_options
@state_dir_option
@click.option("--to-earliest", is_flag=True, help="Begin with the first records that there are; the default.")
@click.option("--to-latest", is_flag=True, help="Begin after the last records.")
@click.option("--to-current", is_flag=True, help="Keep the offsets; only internal topics and state are deleted.")
@click.option("--to-datetime", metavar="TIME", help="Begin at a time: 2026-01-01T00:00Z, or ms since the epoch.")
@click.option("--by-duration", metavar="DURATION", help="Begin so long ago, for instance P7D or PT2H30M.")
@click.option(
    "--shift-by", metavar="N", type=int, help="Begin so many records later than committed; negative: earlier."
)
@click.option("--to-offset", metavar="N", type=click.IntRange(min=0), help="Begin at this offset of each partition.")
@click.option(
    "--from-file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Begin at the offsets of a file with lines topic,partition,offset; other partitions stay as they are.",
)
@click.option(
    "--internal-topics",
    metavar="TOPIC",
    multiple=True,
    help="Delete this internal topic, too, which a former topology has made. Can be repeated.",
)
@click.option("--keep-state", is_flag=True, help="Leave the local state of this machine alone.")
@click.option("--force", is_flag=True, help="Remove members of the group that are left, of a classic group only.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Do it without a question.")
def reset(
    topology: str,
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    state_dir: str | None,
    internal_topics: tuple[str, ...],
    keep_state: bool,
    force: bool,
    dry_run: bool,
    yes: bool,
    **offsets: object,
) -> None:
    """Begin an application anew: offsets of its inputs, its internal topics, its local state.

    All workers must be stopped. Local state of other machines is deleted there, with --to-current.

    \b
        pykstreams reset word_count.py --bootstrap-servers localhost:9092 --dry-run
        pykstreams reset word_count.py --to-datetime 2026-01-01T00:00Z --yes
    """
    from pykstreams.core.clock import SystemClock
    from pykstreams.dsl.script import load_script
    from pykstreams.runtime.checks.kept_topology import KeptTopology

    clock = SystemClock()
    target = target_of(offsets, clock.now_ms())
    script = load_script(topology)
    options = {"application.id": application_id, "bootstrap.servers": bootstrap_servers, "state.dir": state_dir}
    config = combined_config(script, config_file=config_file, pairs=pairs, options=options)
    need_application_id(config)
    if "bootstrap.servers" not in config:
        raise click.UsageError("no brokers are named; give --bootstrap-servers HOST:PORT")
    with opened(script.build(config).plan(config), config) as work:
        members = work.check_members(force=force)
        planned = work.plan(target, internal_topics=internal_topics, keep_state=keep_state)
        lines = [f"remove member {one.member_id} (client {one.client_id}, {one.host})" for one in members]
        lines += planned.lines()
        for line in [*lines, *planned.notes()]:
            click.echo(line)
        if not lines:
            click.echo("nothing to reset")
        elif dry_run:
            click.echo("nothing was done (--dry-run)")
        elif yes or _agreed(config):
            work.carry_out(planned, members)
            if not keep_state:
                KeptTopology(config).forget()
            click.echo("done")
        else:
            click.echo("nothing was done")


@contextmanager
def opened(plan: TopologyPlan, config: StreamsConfig) -> Iterator[Reset]:
    """Connects with the cluster, and yields the reset of an application."""
    from pykstreams.core.clock import SystemClock
    from pykstreams.runtime.clients.admin import ClusterAdmin
    from pykstreams.runtime.clients.inspection.group_tools import GroupRequests, GroupTools
    from pykstreams.runtime.reset.reset import Reset

    clock = SystemClock()
    client_id = f"{config.client_id or config.application_id}-reset"
    admin = ClusterAdmin.open(config.client_supplier, config, client_id, clock)
    admin.wait_for_tools()
    requests = GroupRequests.open(config, client_id, thread=None, embedded=admin.embedded)
    group = GroupTools(requests, clock, config.request_timeout_ms / 1000)
    try:
        yield Reset(plan, config, client=admin, group=group, clock=clock)
    finally:
        group.close()


def target_of(options: dict[str, object], now_ms: int) -> Target:
    """The target that options ask for, the beginning by default; ``UsageError`` for more than one."""
    from pykstreams.runtime.reset import targets

    given = {name: value for name, value in options.items() if value is not None and value is not False}
    if len(given) > 1:
        names = ", ".join("--" + name.replace("_", "-") for name in given)
        raise click.UsageError(f"{names} contradict each other; give one of them")
    for name, value in given.items():
        match name, value:
            case "to_latest", _:
                return targets.Latest()
            case "to_current", _:
                return targets.Current()
            case "to_datetime", str():
                return targets.AtTime(moment(value, "--to-datetime"))
            case "by_duration", str():
                return targets.AtTime(now_ms - targets.duration_ms(value))
            case "shift_by", int():
                return targets.ShiftBy(value)
            case "to_offset", int():
                return targets.ToOffset(value)
            case "from_file", Path():
                return targets.read_offsets(value)
    return targets.Earliest()


def _agreed(config: StreamsConfig) -> bool:
    try:
        return click.confirm(f"Reset {config.application_id}? What is deleted cannot be brought back.")
    except click.Abort:
        raise click.UsageError("nobody answered the question; give --yes, or look with --dry-run") from None
