"""Checks of settings that have no effect beside others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pykstreams.core.config import GroupProtocol, StreamsConfig
from pykstreams.core.settings.keys import KEYS
from pykstreams.runtime.checks.finding import Finding, Severity

_OF_LEADERS: Final = (
    StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG,
    StreamsConfig.ACCEPTABLE_RECOVERY_LAG_CONFIG,
    StreamsConfig.MAX_WARMUP_REPLICAS_CONFIG,
    StreamsConfig.PROBING_REBALANCE_INTERVAL_MS_CONFIG,
    StreamsConfig.RACK_AWARE_ASSIGNMENT_NON_OVERLAP_COST_CONFIG,
    StreamsConfig.RACK_AWARE_ASSIGNMENT_STRATEGY_CONFIG,
    StreamsConfig.RACK_AWARE_ASSIGNMENT_TAGS_CONFIG,
    StreamsConfig.RACK_AWARE_ASSIGNMENT_TRAFFIC_COST_CONFIG,
    StreamsConfig.TASK_ASSIGNOR_CLASS_CONFIG,
)
"""Settings by which the leader of a group shares out tasks."""


def setting_findings(config: StreamsConfig) -> Iterator[Finding]:
    """Yields settings of those who share out tasks, where the brokers do so.

    Kafka Streams warns of two of them (``verifyStreamsProtocolCompatibility``, 4.3.1).
    """
    if config.group_protocol is not GroupProtocol.STREAMS:
        return
    for name in _OF_LEADERS:
        if name in config.originals and config[name] != KEYS[name].default:
            yield Finding(
                Severity.WARNING,
                "settings",
                "has no effect with group.protocol=streams, since the brokers share out the tasks",
                name,
                _cure(name, config),
            )


def _cure(name: str, config: StreamsConfig) -> str:
    if name != StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG:
        return "leave it out, or set group.protocol=classic"
    return (
        "set it for the group (kafka-configs.sh --alter --entity-type groups --entity-name "
        f"{config.application_id} --add-config streams.num.standby.replicas={config.num_standby_replicas}), or set "
        "group.protocol=classic"
    )
