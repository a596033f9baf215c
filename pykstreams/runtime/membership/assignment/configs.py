"""The settings that a leader shares out tasks by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pykstreams.core.config import StreamsConfig

STRATEGY_NONE: Final = "none"
STRATEGY_MIN_TRAFFIC: Final = "min_traffic"
STRATEGY_BALANCE_SUBTOPOLOGY: Final = "balance_subtopology"


@dataclass(frozen=True, slots=True)
class AssignmentConfigs:
    """The settings for assignors, of the leader: those of other members count for nothing.

    :param rack_aware_traffic_cost: the cost of an input that comes from another rack; ``None``: the assignor's own.
    :param rack_aware_non_overlap_cost: the cost of a task that moves; ``None``: the assignor's own.
    """

    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_assignment_tags: tuple[str, ...] = ()
    rack_aware_traffic_cost: int | None = None
    rack_aware_non_overlap_cost: int | None = None
    rack_aware_assignment_strategy: str = STRATEGY_NONE

    @classmethod
    def of(cls, config: StreamsConfig) -> AssignmentConfigs:
        """The settings of an application."""
        return cls(
            acceptable_recovery_lag=config.acceptable_recovery_lag,
            max_warmup_replicas=config.max_warmup_replicas,
            num_standby_replicas=config.num_standby_replicas,
            probing_rebalance_interval_ms=config.probing_rebalance_interval_ms,
            rack_aware_assignment_tags=tuple(config.rack_aware_assignment_tags),
            rack_aware_traffic_cost=config.rack_aware_assignment_traffic_cost,
            rack_aware_non_overlap_cost=config.rack_aware_assignment_non_overlap_cost,
            rack_aware_assignment_strategy=config.rack_aware_assignment_strategy,
        )
