"""Clusters for tests of whole applications: embedded in the process, and real ones by address."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import TypeVar

from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients import mock_cluster
from pykstreams.runtime.clients.admin import ClusterAdmin, TopicSpec
from pykstreams.serdes.by_type import SerdeOrType
from pykstreams.testing.cluster_topic import ClusterTopic

K = TypeVar("K")
V = TypeVar("V")

_DELETED_S = 2.0
"""How long a topic may be there after it was deleted."""
_PAUSE_S = 0.05


class EmbeddedCluster(mock_cluster.EmbeddedCluster):
    """Mock brokers in this process; a context manager. Topics appear on first use, with ``PARTITIONS`` partitions.

    Consumer groups, restarts and restoring are as with real brokers; there are no transactions.

    :param brokers: how many brokers to run; one is enough for everything but tests of leaders.
    """

    def __init__(self, brokers: int = 1) -> None:
        super().__init__(brokers)
        self._close_topics = ExitStack()

    def topic(self, name: str, key: SerdeOrType[K], value: SerdeOrType[V]) -> ClusterTopic[K, V]:
        """Makes a topic for typed produce and consume."""
        self.create_topics(name)
        topic = ClusterTopic(self.bootstrap_servers, name, key, value)
        self._close_topics.callback(topic.close)
        return topic

    def close(self) -> None:
        """Stops the brokers, after the clients of its topics, and drops all records; a second call does nothing."""
        self._close_topics.close()
        super().close()


class KafkaCluster:
    """A real cluster for one test, which takes away what it has made there: the fixture ``kafka``.

    Topics of tests that run at the same time have to differ in their names, and from those that are there already.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        config = StreamsConfig({"application.id": "kafka-for-tests", "bootstrap.servers": bootstrap_servers})
        self._clock = SystemClock()
        self._admin = ClusterAdmin.open(config.client_supplier, config, "kafka-for-tests", self._clock)
        self._topics: set[str] = set()
        self._applications: set[str] = set()

    def __repr__(self) -> str:
        return f"KafkaCluster({self.bootstrap_servers!r})"

    def topic(
        self, name: str, key: SerdeOrType[K], value: SerdeOrType[V], *, partitions: int = 1
    ) -> ClusterTopic[K, V]:
        """Creates a topic, and makes it one for typed produce and consume; one of this test may be asked for again.

        ``ClusterError`` for one that was there before the test, which would lose it.
        """
        if name not in self._topics:
            spec = TopicSpec(name, partitions, 1, {})
            if not self._becomes_free(spec):
                raise ClusterError(
                    f"topic {name!r} is on {self.bootstrap_servers} already, and would be deleted after the test; take "
                    "brokers for tests alone (KAFKA_BOOTSTRAP_SERVERS, or Docker), or delete it, if a test that was "
                    "ended has left it"
                )
            self._topics.add(name)
            self._admin.create_topics([spec])
        return ClusterTopic(self.bootstrap_servers, name, key, value)

    def application_id(self, prefix: str) -> str:
        """Returns an id that no other run has; the internal topics of that application are deleted with the others."""
        found = f"{prefix}-{secrets.token_hex(3)}"
        self._applications.add(found)
        return found

    def _becomes_free(self, topic: TopicSpec) -> bool:
        """Whether the name is free, at once or soon: what a test before has deleted may still be on its way out."""
        deadline = self._clock.monotonic() + _DELETED_S
        while not self._admin.can_create(topic):
            if self._clock.monotonic() > deadline:
                return False
            self._clock.sleep(_PAUSE_S)
        return True

    def clean_up(self) -> None:
        """Deletes the topics that were created, and the internal topics of the applications."""
        prefixes = tuple(f"{name}-" for name in self._applications)
        internal = {topic for topic in self._admin.partition_counts() if prefixes and topic.startswith(prefixes)}
        self._admin.delete_topics(sorted(self._topics | internal))
        self._topics.clear()
