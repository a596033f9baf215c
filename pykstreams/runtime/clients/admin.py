"""The door to Kafka's administration: topics, their settings, offsets of their ends.

Invariant: every call is one batch, and every error is one of ours. ``AdminClient.list_consumer_group_offsets`` is
never called: it can end the interpreter when a broker answers NOT_COORDINATOR.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, TypeVar

from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError, ClusterUnavailableError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.errors import cluster_error, is_passing, kafka_error
from pykstreams.runtime.clients.positions import at_positions, without_positions
from pykstreams.runtime.clients.refused_access import Complaints, cure_of
from pykstreams.runtime.clients.supplier import KafkaClientSupplier

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

log = logging.getLogger(__name__)

K = TypeVar("K")

TOOL_PATIENCE_S: Final = 15.0
"""How long a command that looks at a cluster waits for it."""

_RETRY_PAUSE_S = 1.0
_PAUSE_S = 0.05
_TOPICS_S = 10.0
"""How long what a worker's own thread asks for is waited for; it serves nobody meanwhile."""
_EXPECTED_S = 5.0
"""How long topics are looked for that were there before."""
_REFUSED_S = 3.0
"""How long a start goes on where brokers refuse the client; one that has just started may not know its users yet."""
_REQUESTS_S: Final = (1.0, 2.0, 5.0)
"""How long the first request, the second one and each further one wait for an answer, before the client looks who leads
what now: after the restart of a broker the first one often waits for a leader that is gone."""
_spec: Any = OffsetSpec  # without types


class Deletion:
    """A deletion of records under way."""

    def __init__(self, futures: list[Future[Any]]) -> None:
        self._futures = futures

    def done(self) -> bool:
        """Whether the cluster has answered."""
        return all(future.done() for future in self._futures)

    def problem(self) -> str | None:
        """Why some records were not deleted; ask when it is done."""
        for future in self._futures:
            error = future.exception()
            if isinstance(error, KafkaException):
                return kafka_error(error).str()
        return None


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create; ``replication`` -1 leaves it to the broker."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str]


_EMBEDDED_CLUSTER = "mockCluster"
"""How the ids of librdkafka's mock clusters start."""


class ClusterAdmin:
    """Looks at topics and changes them; every call is one batch and waits for its answer."""

    def __init__(
        self,
        admin: AdminClient,
        bootstrap: str,
        clock: Clock,
        timeout_s: float,
        complaints: Complaints,
        start_timeout_s: float | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        self.embedded = False
        """Whether the cluster is an embedded one, which lacks most of the requests; known once it was reached."""
        self._open: AdminClient | None = admin
        self._clock = clock
        self._timeout_s = timeout_s
        self._start_timeout_s = timeout_s if start_timeout_s is None else start_timeout_s
        self._complaints = complaints

    @classmethod
    def open(cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str, clock: Clock) -> ClusterAdmin:
        """Makes the client; a request waits for ``request.timeout.ms``, the first one for ``task.timeout.ms``."""
        complaints = Complaints()
        timeout_s = config.request_timeout_ms / 1000
        admin = supplier.get_admin(
            {
                **config.get_admin_configs(client_id),
                # The client drops the connection of a frozen broker only then, and asks that broker until then who
                # leads what. A request with a longer time of its own keeps it.
                "socket.timeout.ms": int(1000 * min(timeout_s, _REQUESTS_S[-1])),
                "log_level": 0,  # what it would log comes to the callback, and from there into our own words
                "error_cb": complaints,
            }
        )
        start_timeout_s = config.task_timeout_ms / 1000
        return cls(admin, ",".join(config.bootstrap_servers), clock, timeout_s, complaints, start_timeout_s)

    @property
    def _admin(self) -> AdminClient:
        if self._open is None:
            raise ClusterError(f"the client that asks the brokers at {self.bootstrap} is closed, with its application")
        return self._open

    def close(self) -> None:
        """Lets go of the client, which has no other end than that nobody has it; a second call does nothing.

        Whoever has this object has many others that know each other: the client would wait for a look for cycles.
        """
        self._open = None

    def wait_until_reachable(
        self, stopped: Callable[[], bool] = lambda: False, *, at_most_s: float = float("inf")
    ) -> None:
        """Waits for the cluster, aloud; ``ClusterError`` after ``task.timeout.ms`` without an answer, and soon where
        brokers answer that they do not let this client in.

        :param at_most_s: the longest time, for somebody who sits before it.
        """
        warnings = RepeatedWarnings(log, self._clock)
        patience_s = min(self._start_timeout_s, at_most_s)
        deadline = self._clock.monotonic() + patience_s
        told: str | None = None  # why, which the client says only when it changes
        refused_since: float | None = None
        while not stopped():
            left = deadline - self._clock.monotonic()
            try:
                found = self._admin.list_topics(timeout=max(0.1, min(_RETRY_PAUSE_S, left)))
                self.embedded = str(found.cluster_id).startswith(_EMBEDDED_CLUSTER)
                return
            except KafkaException as exception:
                self._admin.poll(0)
                new = self._complaints.take()
                told = new or told
                reason = told or kafka_error(exception).str()
                now = self._clock.monotonic()
                cure = cure_of(reason)
                refused_since = None if new is None or cure is None else refused_since or now
                if cure is not None and refused_since is not None and now - refused_since >= _REFUSED_S:
                    raise ClusterError(
                        f"the brokers at {self.bootstrap} do not let this application in: {reason}; {cure}"
                    ) from exception
                if now >= deadline:
                    look = "check bootstrap.servers and that the broker runs"
                    if self._start_timeout_s < at_most_s:
                        look += ", or raise task.timeout.ms"
                    raise ClusterError(
                        f"no broker answered at {self.bootstrap} within {patience_s:g} s: {reason}; {cure or look}"
                    ) from exception
                warnings.warn(
                    "unreachable",
                    "no broker answers at %s: %s; trying again for another %.0f s",
                    self.bootstrap,
                    reason,
                    deadline - now,
                )

    def wait_for_tools(self) -> None:
        """Waits for a cluster as somebody who sits before it does; ``ClusterError`` for an embedded one, too."""
        self.wait_until_reachable(at_most_s=TOOL_PATIENCE_S)
        if self.embedded:
            raise ClusterError(
                f"the cluster at {self.bootstrap} is an embedded one: its topics appear when they are first used, and "
                "it does not know the requests by which groups, settings and rights are looked at or changed; look at "
                "the application itself (pykstreams run --http), or use a real broker"
            )

    def partition_counts(self, expected: Collection[str] = ()) -> dict[str, int]:
        """Every topic of the cluster with its number of partitions; waits no longer than a worker may be deaf.

        :param expected: topics that were there before. While one of them is missing others are asked, for a while: a
            broker learns of new topics later than the one that told of them, and after a start of all.
        """
        deadline = self._clock.monotonic() + _EXPECTED_S
        while True:
            counts = {name: len(topic.partitions) for name, topic in self._topics().items()}
            if counts.keys() >= set(expected) or self._clock.monotonic() > deadline:
                return counts
            self._admin.poll(_PAUSE_S)

    def touch(self, topics: Iterable[str]) -> None:
        """Makes topics of an embedded cluster appear, which is by asking for them."""
        for topic in topics:
            try:
                self._admin.list_topics(topic, timeout=self._timeout_s)
            except KafkaException as exception:
                raise cluster_error(f"asking for topic {topic!r}", exception) from exception

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        """Creates topics; one that somebody else creates at the same time is fine."""
        if not topics:
            return
        names = {topic.name for topic in topics}
        self._created(topics, lambda name: f"creating topic {name!r}")
        deadline = self._clock.monotonic() + self._timeout_s
        while missing := sorted(names - set(self.partition_counts())):
            if self._clock.monotonic() > deadline:
                raise ClusterError(f"topics {missing} were created, but do not appear within {self._timeout_s:g} s")
            self._admin.poll(_PAUSE_S)

    def can_create(self, topic: TopicSpec) -> bool:
        """Whether no topic has that name; creates nothing.

        The controller answers, which knows of a topic before the brokers tell of it (``partition_counts``).
        """
        asked = self._created([topic], lambda name: f"asking whether topic {name!r} exists", validate_only=True)
        return topic.name in asked

    def _created(
        self, topics: Collection[TopicSpec], doing: Callable[[str], str], *, validate_only: bool = False
    ) -> Collection[str]:
        """The names of those topics that were not there; the others keep their settings."""
        wanted = {
            topic.name: NewTopic(
                topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication,
                config=dict(topic.config),
            )
            for topic in topics
        }
        return self._answers(
            wanted,
            lambda left, timeout_s: self._admin.create_topics(
                [wanted[name] for name in left],
                request_timeout=timeout_s,
                operation_timeout=timeout_s,
                validate_only=validate_only,
            ),
            doing,
            is_done={KafkaError.TOPIC_ALREADY_EXISTS},
        )

    def delete_topics(self, topics: Collection[str]) -> None:
        """Deletes topics; one that is gone already is fine."""
        if topics:
            self._answers(
                topics,
                lambda left, timeout_s: self._admin.delete_topics(
                    list(left), request_timeout=timeout_s, operation_timeout=timeout_s
                ),
                lambda name: f"deleting topic {name!r}",
                is_done={KafkaError.UNKNOWN_TOPIC_OR_PART},
            )

    def topic_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        """The settings of topics."""
        if not topics:
            return {}

        def describe(left: Collection[str], timeout_s: float) -> dict[str, Future[Any]]:
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in left]
            asked = self._admin.describe_configs(resources, request_timeout=timeout_s)
            return {resource.name: future for resource, future in asked.items()}

        found = self._answers(topics, describe, lambda name: f"reading the settings of topic {name!r}")
        return {topic: {name: entry.value for name, entry in entries.items()} for topic, entries in found.items()}

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The offset after the last record, transaction markers and open transactions included.

        :param timeout_s: how long to wait, ``request.timeout.ms`` by default.
        :param read_committed: whether the end lies before the first transaction that is open.
        """
        isolation = {"isolation_level": IsolationLevel.READ_COMMITTED} if read_committed else {}
        return self._offsets(partitions, _spec.latest(), "end", timeout_s, isolation)

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset that there still is.

        :param timeout_s: how long to wait, ``request.timeout.ms`` by default.
        """
        return self._offsets(partitions, _spec.earliest(), "beginning", timeout_s)

    def offsets_at(self, partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """The first offset at or after a time in ms since the epoch, -1 where there is none."""
        return self._offsets(partitions, _spec.for_timestamp(timestamp), "starting", _TOPICS_S)

    def _offsets(
        self,
        partitions: Collection[TopicPartition],
        spec: Any,
        what: str,
        timeout_s: float | None = None,
        isolation: Mapping[str, IsolationLevel] | None = None,
    ) -> dict[TopicPartition, int]:
        """Asks the leaders of the partitions.

        A leader that does not know yet of a topic that was just made, or has just started itself, says that it does not
        exist: that may pass, and the watch over topics finds one that is gone. And while a leader is silent the client
        answers by itself, without an error, with an offset that says nothing.
        """

        def ask(left: Collection[TopicPartition], timeout_s: float) -> dict[TopicPartition, Future[Any]]:
            asked = self._admin.list_offsets(
                dict.fromkeys(without_positions(left), spec), request_timeout=timeout_s, **(isolation or {})
            )
            return {TopicPartition(place.topic, place.partition): future for place, future in asked.items()}

        found = self._answers(
            partitions,
            ask,
            lambda place: f"asking for the {what} offset of {place}",
            passes={KafkaError.UNKNOWN_TOPIC_OR_PART},
            says_nothing=lambda answer: answer.offset == OFFSET_INVALID,
            timeout_s=timeout_s,
        )
        return {place: answer.offset for place, answer in found.items()}

    def _answers(
        self,
        wanted: Collection[K],
        ask: Callable[[Collection[K], float], Mapping[K, Future[Any]]],
        doing: Callable[[K], str],
        *,
        is_done: Collection[int] = (),
        passes: Collection[int] = (),
        says_nothing: Callable[[Any], bool] = lambda _: False,
        timeout_s: float | None = None,
    ) -> dict[K, Any]:
        """Makes a request, and makes it again for those whose answer was none, until the time is over.

        The client keeps what it believes of leaders, their epochs and the controller until it is made to look again:
        without that a request is refused for minutes after a leader has changed (FENCED_LEADER_EPOCH), or waits all of
        its time for a connection that is gone.

        :param is_done: codes of errors which say that it was done before; what they answer is left out.
        :param passes: codes of errors that pass in this case, besides those that always do.
        :param timeout_s: how long to wait in all, ``request.timeout.ms`` by default.
        """
        patience_s = self._timeout_s if timeout_s is None else timeout_s
        deadline = self._clock.monotonic() + patience_s
        left, found = list(wanted), dict[K, Any]()
        for request_s in chain(_REQUESTS_S, repeat(_REQUESTS_S[-1])):
            if not left:
                break
            one_s = max(_PAUSE_S, min(request_s, deadline - self._clock.monotonic()))
            asked, left = ask(left, one_s), []
            for one, future in asked.items():
                failure: Exception | None = None
                try:
                    answer = future.result(one_s + _RETRY_PAUSE_S)
                except KafkaException as exception:
                    code = kafka_error(exception).code()
                    if code in is_done:
                        continue
                    if not is_passing(exception) and code not in passes:
                        raise cluster_error(doing(one), exception) from exception
                    failure = ClusterUnavailableError(str(cluster_error(doing(one), exception)))
                    failure.__cause__ = exception
                except TimeoutError:
                    failure = ClusterUnavailableError(f"{doing(one)} took longer than {patience_s:g} s")
                else:
                    if not says_nothing(answer):
                        found[one] = answer
                        continue
                    failure = ClusterUnavailableError(f"{doing(one)} gave no answer for {patience_s:g} s")
                if self._clock.monotonic() > deadline:
                    raise failure
                left.append(one)
            if left:
                self._admin.poll(_PAUSE_S)
                self._look_again()
        return found

    def _look_again(self) -> None:
        """Has the client ask who leads what."""
        try:
            self._admin.list_topics(timeout=_RETRY_PAUSE_S)
        except KafkaException as exception:
            log.debug("who leads the partitions was not found out yet: %s", kafka_error(exception).str())

    def racks(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, frozenset[str]]:
        """The racks of the replicas of partitions; one whose racks are not all known is left out."""
        cluster = self._wait(self._admin.describe_cluster(request_timeout=self._timeout_s), "asking for racks")
        rack_of = {node.id: node.rack for node in cluster.nodes}
        topics = self._topics()
        found = {}
        for place in partitions:
            topic = topics.get(place.topic)
            replicas = (
                topic.partitions[place.partition].replicas if topic and place.partition in topic.partitions else []
            )
            racks = [rack_of.get(broker) for broker in replicas]
            if racks and all(racks):
                found[place] = frozenset(rack for rack in racks if rack)
        return found

    def _topics(self) -> dict[str, Any]:
        try:
            found = self._admin.list_topics(timeout=min(self._timeout_s, _TOPICS_S))
        except KafkaException as exception:
            raise cluster_error(f"listing the topics of {self.bootstrap}", exception) from exception
        return {name: topic for name, topic in found.topics.items() if topic.error is None and topic.partitions}

    def delete_records(self, before: Mapping[TopicPartition, int]) -> Deletion:
        """Starts to delete the records before an offset of each partition."""
        return Deletion(
            list(self._admin.delete_records(at_positions(before), request_timeout=self._timeout_s).values())
        )

    def _wait(self, future: Future[Any], doing: str) -> Any:
        try:
            return future.result(self._timeout_s + _RETRY_PAUSE_S)
        except KafkaException as exception:
            raise cluster_error(doing, exception) from exception
        except TimeoutError as error:
            raise ClusterUnavailableError(f"{doing} took longer than {self._timeout_s:g} s") from error
