"""Checks before a start: brokers that answer, and the topics that users make.

Nothing is created or changed by a check, so that whoever starts several workers may look once for all of them.

Invariant: brokers that go away during a start are waited for as at its beginning, for ``task.timeout.ms``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterUnavailableError, ConfigError
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.topics.user_topics import UserTopics
from pykstreams.topology.plan import TopologyPlan

T = TypeVar("T")


class StoppedWhileStartingError(Exception):
    """Ends a start early; nobody else sees it."""


class Cluster(Protocol):
    """The methods of a cluster with which a start waits for it."""

    def wait_until_reachable(self, stopped: Callable[[], bool]) -> None: ...


def ask_at_start(
    ask: Callable[[], T], cluster: Cluster, config: StreamsConfig, clock: Clock, stopped: Callable[[], bool]
) -> T:
    """Waits for the cluster, and returns what it answers; asks again where brokers go away meanwhile.

    ``ClusterError`` when there was no answer for ``task.timeout.ms``, ``StoppedWhileStartingError`` when ``stopped()``.

    :param ask: makes requests whose errors are ours; called once or more.
    """
    outage = Outage(f"requests of the start of {config.application_id}", clock, config.task_timeout_ms / 1000)
    while True:
        cluster.wait_until_reachable(stopped)
        if stopped():
            raise StoppedWhileStartingError
        try:
            return ask()
        except ClusterUnavailableError as error:
            outage.failed(error)


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
    with suppress(StoppedWhileStartingError):
        ask_at_start(lambda: check_start(plan, config, admin), admin, config, clock, stopped)
