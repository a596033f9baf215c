"""All checks of one application; what one of them cannot ask becomes a finding, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.checks.clock_checks import clock_findings
from pykstreams.runtime.checks.cluster_checks import (
    Facts,
    group_findings,
    protocol_findings,
    replication_findings,
    rights_findings,
    transaction_findings,
)
from pykstreams.runtime.checks.finding import Finding, Severity, of_message
from pykstreams.runtime.checks.flow_checks import flow_findings
from pykstreams.runtime.checks.key_checks import ReadKeys, key_findings
from pykstreams.runtime.checks.limit_checks import limit_findings
from pykstreams.runtime.checks.machine_checks import disk_findings
from pykstreams.runtime.checks.rights import wanted_rights
from pykstreams.runtime.checks.setting_checks import setting_findings
from pykstreams.runtime.checks.topic_checks import name_findings, topic_findings
from pykstreams.runtime.topics.topic_admin import TopicClient
from pykstreams.state.directory.disk_room import MeasureRoom, room_of
from pykstreams.topology.checks.missing_serdes import missing_serdes
from pykstreams.topology.checks.missing_sources import missing_sources
from pykstreams.topology.plan import TopologyPlan


def local_findings(plan: TopologyPlan, config: StreamsConfig, measure: MeasureRoom = room_of) -> list[Finding]:
    """Finds what needs no cluster: a topology that reads nothing, or again what it writes, or makes what nobody takes;
    serdes, names of topics, settings and the disk.
    """
    said = missing_sources(plan)
    sources = [] if said is None else [of_message("topology", plan.application_id, said)]
    serdes = [of_message("serdes", plan.application_id, text) for text in missing_serdes(plan, config)]
    names, settings = name_findings(plan, config), setting_findings(config)
    flow = flow_findings(plan)
    return [*sources, *flow, *serdes, *names, *settings, *disk_findings(plan, config, measure)]


def cluster_findings(
    plan: TopologyPlan, config: StreamsConfig, client: TopicClient, facts: Facts, read_keys: ReadKeys | None = None
) -> list[Finding]:
    """Finds what a cluster tells that has been reached; without ``read_keys`` no records are looked at."""

    def rights() -> Iterator[Finding]:
        existing = client.partition_counts()
        topics = {one.topic for one in wanted_rights(plan, config)} & existing.keys()
        yield from rights_findings(plan, config, facts.allowed(topics), existing)

    asks: tuple[tuple[str, Callable[[], Iterable[Finding]]], ...] = (
        ("topics", lambda: topic_findings(plan, config, client)),
        ("settings", lambda: replication_findings(config, len(facts.brokers()))),
        ("settings", lambda: limit_findings(plan, config, facts.limits(), client.partition_counts())),
        ("brokers", lambda: protocol_findings(config, facts.protocols())),
        ("clock", lambda: clock_findings(facts.controller_clock())),
        ("rights", rights),
        ("rights", lambda: group_findings(plan, facts)),
        ("rights", lambda: transaction_findings(plan, config, facts)),
        ("keys", lambda: () if read_keys is None else key_findings(plan, client.partition_counts(), read_keys)),
    )
    found: list[Finding] = []
    for name, ask in asks:
        try:
            found += ask()
        except ClusterError as error:
            cure = "see to it that the user may describe the cluster, its settings, topics and group, and check again"
            found.append(Finding(Severity.WARNING, name, f"not checked: {error}", client.bootstrap, cure))
    return found
