"""Checks of brokers: whether they speak the protocols that the settings ask for, and what they allow this user."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.runtime.checks.rights import GROUP_RIGHTS, TopicRights, wanted_rights
from pykstreams.runtime.clients.inspection.broker_requests import Protocols
from pykstreams.runtime.clients.inspection.cluster_facts import Allowed, ClockReading
from pykstreams.topology.plan import TopologyPlan

_TXN_OFFSET_COMMIT: Final = 28
_STREAMS_GROUP_HEARTBEAT: Final = 88
_STREAMS_FEATURE: Final = "streams.version"
_CURE: Final = "have an administrator allow it; 'pykstreams topics --acls' prints the commands"


class Facts(Protocol):
    """The questions that checks of a cluster ask."""

    def brokers(self) -> Collection[int]: ...

    def protocols(self) -> Mapping[int, Protocols]: ...

    def limits(self) -> Mapping[str, str]: ...

    def controller_clock(self) -> ClockReading | None: ...

    def allowed(self, topics: Collection[str]) -> Allowed: ...

    def group_rights(self) -> frozenset[str]: ...

    def may_write_transactions(self, transactional_id: str) -> bool: ...


def protocol_findings(config: StreamsConfig, protocols: Mapping[int, Protocols]) -> Iterator[Finding]:
    """Yields protocols that the settings ask for and brokers do not speak, or the cluster has not switched on."""
    old = [broker for broker, one in protocols.items() if one.requests.get(_TXN_OFFSET_COMMIT, -1) < 3]
    if config.exactly_once and old:
        yield Finding(
            Severity.ERROR,
            "brokers",
            f"{_named(old)} older than 2.5, and exactly_once_v2 commits offsets as those do",
            "processing.guarantee",
            "upgrade the brokers, or set processing.guarantee=at_least_once",
        )
    if config.group_protocol != "streams":
        return
    without = [broker for broker, one in protocols.items() if _STREAMS_GROUP_HEARTBEAT not in one.requests]
    if without:
        yield Finding(
            Severity.ERROR,
            "brokers",
            f"{_named(without)} without streams groups (KIP-1071)",
            "group.protocol",
            "upgrade the brokers to 4.2 with the feature streams.version, or set group.protocol=classic",
        )
    elif any(one.features is not None and one.features.get(_STREAMS_FEATURE, 0) < 1 for one in protocols.values()):
        yield Finding(
            Severity.ERROR,
            "brokers",
            "brokers know streams groups, and the feature streams.version is switched off in this cluster",
            "group.protocol",
            "switch it on with kafka-features.sh upgrade --feature streams.version=1, or set group.protocol=classic",
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
    """Yields what the application will do with topics and may not."""
    wanted = list(wanted_rights(plan, config))
    for one in wanted:
        if one.topic in existing and (lacking := one.operations - allowed.topics.get(one.topic, frozenset())):
            yield _refused_topic(one, lacking)
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


def group_findings(plan: TopologyPlan, facts: Facts) -> Iterator[Finding]:
    """Yields what members do with their group and this user may not."""
    if lacking := GROUP_RIGHTS - facts.group_rights():
        yield Finding(
            Severity.ERROR,
            "rights",
            f"the user may not {' and '.join(sorted(lacking))} the group, as its members do",
            f"group {plan.application_id}",
            _CURE,
        )


def transaction_findings(plan: TopologyPlan, config: StreamsConfig, facts: Facts) -> Iterator[Finding]:
    """Yields that transactions are refused, where the application uses them."""
    if config.exactly_once and not facts.may_write_transactions(f"{plan.application_id}-check"):
        yield Finding(
            Severity.ERROR,
            "rights",
            "the user may not WRITE under transactional ids that begin so, as exactly_once_v2 does",
            f"transactional ids {plan.application_id}-*",
            f"{_CURE}; or set processing.guarantee=at_least_once",
        )


def _refused_topic(right: TopicRights, lacking: Collection[str]) -> Finding:
    what = f"the user may not {' and '.join(sorted(lacking))}, as the application does"
    return Finding(Severity.ERROR, "rights", what, right.topic, _CURE)


def _named(brokers: Collection[int]) -> str:
    ids = ", ".join(str(broker) for broker in brokers)
    return f"broker {ids} is" if len(brokers) == 1 else f"brokers {ids} are"
