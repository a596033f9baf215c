"""Checks before a start: brokers that answer, and the topics that users make.

Nothing is created or changed, so that whoever starts several workers may look once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.topics.user_topics import UserTopics
from pykstreams.topology.plan import TopologyPlan


def check_start(plan: TopologyPlan, config: StreamsConfig, admin: ClusterAdmin) -> None:
    """Raises an error when the cluster, which has been reached, lacks what the application needs.

    An embedded cluster makes topics of its own accord.
    """
    if not admin.embedded:
        UserTopics(admin, plan, dead_letters=config.errors_dead_letter_queue_topic_name).check()
    elif config.exactly_once:
        raise ConfigError(
            "processing.guarantee is 'exactly_once_v2', and an embedded cluster has no transactions; use "
            "at_least_once, or a real cluster"
        )


def look_before_start(plan: TopologyPlan, config: StreamsConfig, clock: Clock, stopped: Callable[[], bool]) -> None:
    """Waits for the cluster as a start does, and checks it; gives up without an error when ``stopped()``."""
    client_id = config.client_id or config.application_id
    admin = ClusterAdmin.open(config.client_supplier, config, f"{client_id}-start-admin", clock)
    admin.wait_until_reachable(stopped)
    if not stopped():
        check_start(plan, config, admin)
