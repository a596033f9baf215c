"""Checks of brokers: what they know of the protocols that the settings ask for, and what they allow this user."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.runtime.checks.rights import TopicRights, wanted_rights
from pykstreams.runtime.clients.inspection.cluster_facts import Allowed
from pykstreams.topology.plan import TopologyPlan

_TXN_OFFSET_COMMIT: Final = 28
_STREAMS_GROUP_HEARTBEAT: Final = 88


class Facts(Protocol):
    """The questions that this module asks."""

    def brokers(self) -> int: ...

    def versions(self) -> dict[int, int]: ...

    def allowed(self, topics: Collection[str]) -> Allowed: ...


def version_findings(config: StreamsConfig, versions: Mapping[int, int]) -> Iterator[Finding]:
    """Yields protocols that the settings ask for and the brokers do not have."""
    if config.exactly_once and versions.get(_TXN_OFFSET_COMMIT, -1) < 3:
        yield Finding(
            Severity.ERROR,
            "brokers",
            "brokers are older than 2.5, and exactly_once_v2 commits offsets as those do",
            "processing.guarantee",
            "upgrade the brokers, or set processing.guarantee=at_least_once",
        )
    if config.group_protocol == "streams" and _STREAMS_GROUP_HEARTBEAT not in versions:
        yield Finding(
            Severity.ERROR,
            "brokers",
            "brokers do not serve streams groups (KIP-1071)",
            "group.protocol",
            "upgrade the brokers to 4.2 with the feature streams.version, or set group.protocol=classic",
        )


def replication_findings(config: StreamsConfig, brokers: int) -> Iterator[Finding]:
    """Yields a replication factor that internal topics cannot have."""
    if config.replication_factor > brokers:
        yield Finding(
            Severity.ERROR,
            "settings",
            f"is {config.replication_factor}, and there are {brokers} brokers, so no internal topic can be created",
            "replication.factor",
            f"set replication.factor={brokers}, or -1 for the brokers' default",
        )


def rights_findings(
    plan: TopologyPlan, config: StreamsConfig, allowed: Allowed, existing: Collection[str]
) -> Iterator[Finding]:
    """Yields what the application will do and may not."""
    wanted = list(wanted_rights(plan, config))
    for one in wanted:
        if one.topic in existing and (lacking := sorted(one.operations - allowed.topics.get(one.topic, frozenset()))):
            yield _refused(one, lacking)
    create = [one.topic for one in wanted if one.is_own and one.topic not in existing]
    if create and "CREATE" not in allowed.cluster:
        yield Finding(
            Severity.ERROR,
            "rights",
            f"topics {', '.join(sorted(create))} do not exist, and the user may not create topics",
            "cluster",
            "have an administrator create them ('pykstreams topics' names partitions and settings), or allow it "
            "('pykstreams topics --acls')",
        )


def _refused(right: TopicRights, lacking: list[str]) -> Finding:
    return Finding(
        Severity.ERROR,
        "rights",
        f"the user may not {' and '.join(lacking)}, as the application does",
        right.topic,
        "have an administrator allow it; 'pykstreams topics --acls' prints the commands",
    )
