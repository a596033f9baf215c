"""``pykstreams check``: everything that can be known to be wrong before the start, in one list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykstreams.cli.options import (
    SETTINGS_HELP,
    brokers_option,
    combined_config,
    format_option,
    need_application_id,
    settings_options,
    state_dir_option,
    topology_argument,
)

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.runtime.checks.finding import Finding
    from pykstreams.topology.plan import TopologyPlan
    from pykstreams.topology.topology import Topology


@click.command(epilog=SETTINGS_HELP)
@topology_argument
@brokers_option
@settings_options
@state_dir_option
@format_option
def check(
    topology: str,
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    state_dir: str | None,
    form: str,
) -> None:
    """Find what is wrong before the start: topics, partition counts, serdes, annotations, subjects, rights, brokers,
    clock, keys, disk.

    Nothing is changed. Without brokers only the script and this machine are checked. The exit code is 2
    when there are errors, and 0 when there are warnings only.

    \b
        pykstreams check word_count.py --bootstrap-servers localhost:9092
    """
    import json

    from pykstreams.cli.exit_codes import ExitCode
    from pykstreams.dsl.script import load_script
    from pykstreams.runtime.checks.finding import Severity

    script = load_script(topology)
    options = {"application.id": application_id, "bootstrap.servers": bootstrap_servers, "state.dir": state_dir}
    config = combined_config(script, config_file=config_file, pairs=pairs, options=options, resolves=True)
    need_application_id(config)
    built = script.build(config)
    found = [*contradiction_findings(built), *findings(built.plan(config), config)]
    errors = sum(one.severity is Severity.ERROR for one in found)
    if form == "json":
        click.echo(json.dumps([one.as_dict() for one in found], indent=2))
    else:
        for one in sorted(found, key=lambda one: one.severity is not Severity.ERROR):
            click.echo(str(one))
        click.echo(f"errors: {errors}, warnings: {len(found) - errors}")
    click.get_current_context().exit(ExitCode.USAGE if errors else ExitCode.STOPPED)


def contradiction_findings(topology: Topology) -> list[Finding]:
    """Finds what the script says twice and not alike, annotations of functions for instance."""
    from pykstreams.runtime.checks.finding import Finding, Severity

    return [Finding(Severity.WARNING, "types", one.what, one.where, one.cure) for one in topology.contradictions]


def findings(plan: TopologyPlan, config: StreamsConfig) -> list[Finding]:
    """Checks script, machine and, where brokers are named, the cluster and the schema registries of serdes."""
    from pykstreams.core.clock import SystemClock
    from pykstreams.runtime.checks.application_check import cluster_findings, local_findings
    from pykstreams.runtime.checks.subject_checks import subject_checks, subject_findings
    from pykstreams.runtime.clients.admin import ClusterAdmin
    from pykstreams.runtime.clients.inspection.cluster_facts import ClusterFacts
    from pykstreams.runtime.clients.inspection.latest_keys import LatestKeys

    found = local_findings(plan, config)
    if "bootstrap.servers" not in config:
        return found
    client_id = f"{config.client_id or config.application_id}-check"
    clock = SystemClock()
    admin = ClusterAdmin.open(config.client_supplier, config, client_id, clock)
    admin.wait_for_tools()
    facts = ClusterFacts.open(config, client_id, clock)
    latest = LatestKeys.open(config, admin, client_id, clock) if config.partitioner_check_enable else None
    try:
        found += subject_findings(subject_checks(plan, config))
        return found + cluster_findings(plan, config, admin, facts, None if latest is None else latest.read)
    finally:
        facts.close()
        if latest is not None:
            latest.close()
