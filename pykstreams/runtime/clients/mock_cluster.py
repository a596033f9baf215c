"""The embedded cluster: librdkafka's in-process mock brokers, for demonstrations and tests without Kafka.

It speaks Kafka's protocol on local ports, so other clients and other processes can use it by address. It
produces, fetches, keeps headers and timestamps, and runs consumer groups. It has no topic creation, no
exactly-once, no deletion of records, no check of names, and no memory beyond its process: claims about those
are tested on a real broker.

Invariant: the cluster lives exactly as long as the client that hosts it, and only this module holds that one.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, Producer

from pykstreams.core.errors import ClusterError

PARTITIONS = 4
"""Every topic of an embedded cluster has this many partitions; it cannot be chosen."""

PARTITION_LIMIT_BYTES = 5 * 1024 * 1024
"""About how much a partition keeps; older batches vanish silently, and the low watermark rises above 0."""

_START_TIMEOUT_S = 10.0


class EmbeddedCluster:
    """Mock brokers in this process, running from construction to ``close()``; a context manager.

    Topics appear on first use, always with ``PARTITIONS`` partitions.

    >>> with EmbeddedCluster() as cluster:
    ...     cluster.create_topics("orders")
    ...     cluster.topics()
    ['orders']

    :param brokers: how many brokers to run; one is enough for everything but tests of leaders.
    """

    def __init__(self, brokers: int = 1) -> None:
        if brokers < 1:
            raise ValueError(f"an embedded cluster needs at least one broker, got brokers={brokers!r}")
        # log_level 4 leaves out the notice that the mock cluster is on; librdkafka ignores the address
        self._host: Producer | None = Producer(
            {"bootstrap.servers": "", "test.mock.num.brokers": brokers, "log_level": 4}
        )
        try:
            metadata = self._host.list_topics(timeout=_START_TIMEOUT_S)
        except KafkaException as error:
            self._host = None
            raise ClusterError(
                f"the embedded cluster of {brokers} brokers did not answer within {_START_TIMEOUT_S:g} s; "
                "it needs free ports on 127.0.0.1"
            ) from error
        brokers_by_id = sorted(metadata.brokers.items())
        self.bootstrap_servers = ",".join(f"{found.host}:{found.port}" for _, found in brokers_by_id)

    def __repr__(self) -> str:
        return f"<EmbeddedCluster at {self.bootstrap_servers}>"

    def create_topics(self, *topics: str) -> None:
        """Makes topics exist, by asking for them; those that are there already stay as they are."""
        host = self._running()
        for topic in topics:
            host.list_topics(topic, timeout=_START_TIMEOUT_S)

    def topics(self) -> list[str]:
        """The names of the topics that exist, sorted."""
        return sorted(self._running().list_topics(timeout=_START_TIMEOUT_S).topics)

    def close(self) -> None:
        """Stops the brokers and drops all records; a second call does nothing."""
        self._host = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _running(self) -> Producer:
        if self._host is None:
            raise ClusterError("this embedded cluster is closed; make a new one")
        return self._host
