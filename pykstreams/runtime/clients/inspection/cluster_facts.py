"""The facts of a cluster that matter before a start: its brokers, their protocols, limits, clock, what they allow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients.errors import GroupError, cluster_error
from pykstreams.runtime.clients.inspection.broker_requests import BrokerRequests, Protocols

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Allowed:
    """The operations that the authorizer allows, by Kafka's names; without an authorizer all of them."""

    cluster: frozenset[str]
    topics: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A reading of a broker's wall clock, between two of this machine's, in ms since the epoch."""

    before_ms: int
    broker_ms: int
    after_ms: int


class ClusterFacts:
    """Asks the cluster; every question is bounded, and fails with ``ClusterError``."""

    def __init__(self, admin: AdminClient, requests: BrokerRequests, clock: Clock, timeout_s: float) -> None:
        self._admin = admin
        self._requests = requests
        self._clock = clock
        self._timeout_s = timeout_s

    @classmethod
    def open(cls, config: StreamsConfig, client_id: str, clock: Clock) -> ClusterFacts:
        """Makes the clients; they connect with the first question."""
        admin = config.client_supplier.get_admin({**config.get_admin_configs(client_id), "log_level": 0})
        requests = BrokerRequests.open(config, client_id, thread=None)
        return cls(admin, requests, clock, min(config.request_timeout_ms / 1000, 10.0))

    def brokers(self) -> tuple[int, ...]:
        """Returns the ids of the brokers."""
        try:
            return tuple(sorted(self._admin.list_topics(timeout=self._timeout_s).brokers))
        except KafkaException as exception:
            raise cluster_error("listing the brokers", exception) from exception

    def protocols(self) -> dict[int, Protocols]:
        """Returns the protocols of each broker: while brokers are upgraded, some speak older ones."""
        doing = "asking for the versions of requests"
        return {broker: self._said(doing, partial(self._requests.protocols, broker)) for broker in self.brokers()}

    def limits(self) -> dict[str, str]:
        """Returns the settings of a broker; those that are to be the same on all of them are of interest."""
        number = str(self.brokers()[0])
        (asked,) = self._admin.describe_configs(
            [ConfigResource(ResourceType.BROKER, number)], request_timeout=self._timeout_s
        ).values()
        return {name: entry.value for name, entry in self._of(asked, "reading the settings of brokers").items()}

    def controller_clock(self) -> ClockReading | None:
        """Reads the clock of the active controller; ``None`` where brokers do not tell it."""
        before = self._clock.now_ms()
        found = self._said("asking for the time of the controller", self._requests.controller_time_ms)
        return None if found is None else ClockReading(before, found, self._clock.now_ms())

    def group_rights(self) -> frozenset[str]:
        """Returns what this user may do with the group of the application, of DESCRIBE and READ."""
        asks = {"DESCRIBE": self._requests.may_find_group, "READ": self._requests.may_join_group}
        return frozenset(name for name, ask in asks.items() if self._said("asking what is allowed of the group", ask))

    def may_write_transactions(self, transactional_id: str) -> bool:
        """Returns whether this user may write under a transactional id."""
        doing = f"asking what is allowed of transactional id {transactional_id!r}"
        return self._said(doing, lambda: self._requests.may_write_transactions(transactional_id))

    def allowed(self, topics: Collection[str]) -> Allowed:
        """Returns what this user may do with the cluster, and with those topics that exist."""
        cluster = self._admin.describe_cluster(include_authorized_operations=True, request_timeout=self._timeout_s)
        found = self._of(cluster, "asking what is allowed")
        by_topic: dict[str, frozenset[str]] = {}
        if topics:
            asked = self._admin.describe_topics(
                TopicCollection(sorted(topics)), include_authorized_operations=True, request_timeout=self._timeout_s
            )
            for topic, future in asked.items():
                one = self._of(future, f"asking what is allowed of topic {topic!r}")
                by_topic[topic] = _names(one.authorized_operations)
        return Allowed(_names(found.authorized_operations), by_topic)

    def close(self) -> None:
        """Closes the connections."""
        self._requests.close()

    def _said(self, doing: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except GroupError as error:
            raise error.as_cluster_error(doing) from error

    def _of(self, future: Any, doing: str) -> Any:
        try:
            return future.result(self._timeout_s)
        except KafkaException as exception:
            raise cluster_error(doing, exception) from exception
        except TimeoutError as error:
            raise ClusterError(f"{doing} took longer than {self._timeout_s:g} s") from error


def _names(operations: Collection[Any] | None) -> frozenset[str]:
    return frozenset(one.name for one in operations or ())
