"""The settings for assignors, from those of an application."""

from __future__ import annotations

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs


def test_the_defaults_are_those_of_an_application() -> None:
    assert AssignmentConfigs.of(StreamsConfig()) == AssignmentConfigs()


def test_each_setting_is_taken_over() -> None:
    config = StreamsConfig(
        {"client.tag.zone": "a", "client.tag.cluster": "b"},
        acceptable_recovery_lag=1,
        max_warmup_replicas=2,
        num_standby_replicas=3,
        probing_rebalance_interval_ms=60_004,
        rack_aware_assignment_tags=["zone", "cluster"],
        rack_aware_assignment_traffic_cost=5,
        rack_aware_assignment_non_overlap_cost=6,
        rack_aware_assignment_strategy="min_traffic",
    )
    assert AssignmentConfigs.of(config) == AssignmentConfigs(1, 2, 3, 60_004, ("zone", "cluster"), 5, 6, "min_traffic")
