"""The facts of a cluster that matter before a start: its brokers, the requests that they know, and what they allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from kafka.protocol.metadata import ApiVersionsRequest

from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients.errors import GroupError, cluster_error
from pykstreams.runtime.clients.inspection.group_tools import GroupRequests

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig


@dataclass(frozen=True, slots=True)
class Allowed:
    """The operations that the authorizer allows, by Kafka's names; without an authorizer all of them."""

    cluster: frozenset[str]
    topics: Mapping[str, frozenset[str]]


class ClusterFacts:
    """Asks the cluster; every question is bounded, and fails with ``ClusterError``."""

    def __init__(self, admin: AdminClient, requests: GroupRequests, timeout_s: float) -> None:
        self._admin = admin
        self._requests = requests
        self._timeout_s = timeout_s

    @classmethod
    def open(cls, config: StreamsConfig, client_id: str) -> ClusterFacts:
        """Makes the clients; they connect with the first question."""
        admin = config.client_supplier.get_admin({**config.get_admin_configs(client_id), "log_level": 0})
        requests = GroupRequests.open(config, client_id, thread=None)
        return cls(admin, requests, min(config.request_timeout_ms / 1000, 10.0))

    def brokers(self) -> int:
        """Returns how many brokers there are."""
        try:
            return len(self._admin.list_topics(timeout=self._timeout_s).brokers)
        except KafkaException as exception:
            raise cluster_error("listing the brokers", exception) from exception

    def versions(self) -> dict[int, int]:
        """Returns the highest version of each request that the coordinator of the group takes, by the request's key."""
        try:
            answer = self._requests.ask(
                ApiVersionsRequest(max_version=3, client_software_name="pykstreams", client_software_version="unknown")
            )
            self._requests.raise_for(answer.error_code)
        except GroupError as error:
            raise error.as_cluster_error("asking for the versions of requests") from error
        return {one.api_key: one.max_version for one in answer.api_keys}

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

    def _of(self, future: Any, doing: str) -> Any:
        try:
            return future.result(self._timeout_s)
        except KafkaException as exception:
            raise cluster_error(doing, exception) from exception
        except TimeoutError as error:
            raise ClusterError(f"{doing} took longer than {self._timeout_s:g} s") from error


def _names(operations: Collection[Any] | None) -> frozenset[str]:
    return frozenset(one.name for one in operations or ())
