"""Checks of settings against the limits of brokers, which refuse a member, a producer or a record beyond them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.runtime.clients.coordinators.coordinator_requests import group_settings
from pykstreams.topology.plan import TopologyPlan

_ALL: Final = ("all", "-1")


def limit_findings(
    plan: TopologyPlan, config: StreamsConfig, limits: Mapping[str, str], existing: Collection[str]
) -> Iterator[Finding]:
    """Yields settings that brokers will refuse.

    :param limits: the settings of a broker; what is not among them is not checked.
    :param existing: the topics that there are.
    """
    yield from _session(config, limits)
    producer = config.get_producer_configs("")
    if config.exactly_once:
        yield from _transactions(int(str(producer["transaction.timeout.ms"])), limits)
    if str(producer.get("acks", "all")) in _ALL:
        missing = sorted({one.name for one in plan.internal_topics} - set(existing))
        yield from _replicas(config, limits, missing)


def _session(config: StreamsConfig, limits: Mapping[str, str]) -> Iterator[Finding]:
    least, most = limits.get("group.min.session.timeout.ms"), limits.get("group.max.session.timeout.ms")
    if config.group_protocol != "classic" or least is None or most is None:  # the brokers set that of streams groups
        return
    timeout_ms = group_settings(config, None).session_timeout_ms
    if not int(least) <= timeout_ms <= int(most):
        yield Finding(
            Severity.ERROR,
            "settings",
            f"is {timeout_ms} ms, and the brokers take no member with less than {least} or more than {most} ms",
            "session.timeout.ms",
            "set consumer.session.timeout.ms to a time between these",
        )


def _transactions(timeout_ms: int, limits: Mapping[str, str]) -> Iterator[Finding]:
    most = limits.get("transaction.max.timeout.ms")
    if most is not None and timeout_ms > int(most):
        yield Finding(
            Severity.ERROR,
            "settings",
            f"is {timeout_ms} ms, and the brokers take no producer with more than {most} ms",
            "transaction.timeout.ms",
            f"set producer.transaction.timeout.ms to {most} or less, or raise the brokers' transaction.max.timeout.ms",
        )


def _replicas(config: StreamsConfig, limits: Mapping[str, str], missing: list[str]) -> Iterator[Finding]:
    wanted, default = limits.get("min.insync.replicas"), limits.get("default.replication.factor")
    if wanted is None or default is None or not missing:
        return
    replicas = int(default) if config.replication_factor == -1 else config.replication_factor
    if replicas < int(wanted):
        yield Finding(
            Severity.ERROR,
            "settings",
            f"gives {', '.join(missing)} {replicas} replicas when they are created, and the brokers take no record "
            f"before {wanted} have it (min.insync.replicas)",
            "replication.factor",
            f"set replication.factor={wanted} or more",
        )
