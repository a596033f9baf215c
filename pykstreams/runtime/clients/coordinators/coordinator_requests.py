"""Connections of our own to the coordinator of a group, and the requests that members of every protocol make over them.

librdkafka does not let a member write its own subscription, and an assignor of ours could not run in it. So the
requests of a member are sent over ``kafka-python``, which has their layouts, TLS and SASL; records are still fetched
and produced by librdkafka. Errors have librdkafka's names, so that ``errors`` knows what each of them means.

Invariant: every request has a bound. A connection that failed is closed with all that was known through it (addresses,
versions, the coordinator), and the next request begins with the bootstrap servers.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakSet

import kafka.errors
from confluent_kafka import KafkaError
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import OncePerInterval
from pykstreams.runtime.clients.coordinators.wire_settings import wire_settings
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from pykstreams.runtime.clients.refused_access import cure_of

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

_BOOTSTRAP_S: Final = 5.0
_REQUEST_S: Final = 10.0
"""How long a worker waits for one answer; it serves nobody meanwhile."""
_UNUSED_S: Final = 240.0
"""A connection that was not used for so long is made anew: brokers close it after ``connections.max.idle.ms`` (10 min),
and the next request would fail."""
_LIBRARY_SAYS_S: Final = 60.0
"""How often the library may say the same."""


class _OfOurOwnDoing(logging.Filter):
    """Lets the library say nothing while a request ends that we have interrupted: that it fails is what we want."""

    def __init__(self) -> None:
        super().__init__()
        self.interrupted: WeakSet[_Connections] = WeakSet()

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.interrupted


_OF_OUR_OWN_DOING: Final = _OfOurOwnDoing()

for _name in ("cluster", "net.connection", "net.manager", "net.transport", "protocol.parser"):
    # every failure of a request is reported by the one who asked; during an outage these say the same many times, in
    # many words
    for _filter in (_OF_OUR_OWN_DOING, OncePerInterval(SystemClock(), _LIBRARY_SAYS_S)):
        logging.getLogger(f"kafka.{_name}").addFilter(_filter)


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings of a member that the coordinator is told.

    :param instance_id: ``group.instance.id`` of a static member.
    """

    group: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int


@dataclass(frozen=True, slots=True)
class MemberOf:
    """A member in one generation of its group."""

    generation: int
    member_id: str


class CoordinatorRequests:
    """The coordinator of one group, for the requests of one member; one thread at a time calls, any may ``close``.

    Every request raises ``GroupError``: with the broker's error, or ``_TRANSPORT`` and ``_TIMED_OUT`` where no answer
    came.

    :param settings: as ``wire_settings`` gives them.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        group: GroupSettings,
        request_timeout_s: float,
        clock: Clock = SystemClock(),  # noqa: B008  # it has no state
    ) -> None:
        self._settings = settings
        self._group = group
        self._timeout_s = request_timeout_s
        self._lock = threading.Lock()
        self._connections: _Connections | None = None
        self._clock = clock
        self._asked_at = clock.monotonic()
        self._is_asking = False
        self._is_closed = False

    @classmethod
    def open(
        cls,
        config: StreamsConfig,
        client_id: str,
        *,
        thread: int | None = 1,
        embedded: bool = False,
        patience_s: float = _REQUEST_S,
    ) -> Self:
        """Prepares for requests; connects with the first of them.

        :param thread: makes ``group.instance.id`` unique; ``None``: the member is no static one, whatever is set.
        :param embedded: whether the cluster is librdkafka's own, which cannot be asked which versions it takes.
        :param patience_s: how long an answer is waited for at most, unless it waits for other members.
        """
        settings = config.get_main_consumer_configs(config.application_id, client_id, thread or 1)
        timeout_s = min(config.request_timeout_ms / 1000, _REQUEST_S, patience_s)
        return cls(wire_settings(settings, embedded=embedded), group_settings(config, thread), timeout_s)

    @property
    def group(self) -> GroupSettings:
        """The settings that the coordinator is told of the group and this member."""
        return self._group

    def commit(self, member: MemberOf, offsets: Offsets) -> None:
        """Commits offsets with their metadata."""
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = topic.OffsetCommitRequestPartition
        by_topic: defaultdict[str, list[Any]] = defaultdict(list)
        for place, (offset, metadata) in offsets.items():
            by_topic[place.topic].append(
                partition(
                    partition_index=place.partition,
                    committed_offset=offset,
                    committed_leader_epoch=-1,
                    committed_metadata=metadata,
                )
            )
        answer = self.ask(
            OffsetCommitRequest(
                max_version=9,
                group_id=self._group.group,
                generation_id_or_member_epoch=member.generation,
                member_id=member.member_id,
                group_instance_id=self._group.instance_id,
                topics=[topic(name=name, partitions=found) for name, found in by_topic.items()],
            )
        )
        for one in answer.topics:
            for found in one.partitions:
                self.raise_for(found.error_code)

    def committed(self, partitions: Collection[TopicPartition], *, stable: bool = True) -> Offsets:
        """Reads what the group has committed, without the partitions of which it has committed nothing.

        :param stable: whether a transaction that commits one of them and is open leads to ``UNSTABLE_OFFSET_COMMIT``;
            otherwise what was committed before counts.
        """
        found = self.settled(partitions, stable=stable)
        if found.unsettled:
            self.raise_for(KafkaError.UNSTABLE_OFFSET_COMMIT)
        return found.offsets

    def settled(self, partitions: Collection[TopicPartition], *, stable: bool = True) -> CommittedOffsets:
        """Reads the same, and names the partitions that a transaction commits which is open."""
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup
        by_topic: defaultdict[str, list[int]] = defaultdict(list)
        for place in partitions:
            by_topic[place.topic].append(place.partition)
        answer = self.ask(
            OffsetFetchRequest(  # as of version 8 it may ask for several groups
                max_version=9,
                group_id=self._group.group,
                topics=[
                    OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                    for name, numbers in by_topic.items()
                ],
                groups=[
                    wanted(
                        group_id=self._group.group,
                        member_id=None,
                        member_epoch=-1,
                        topics=[
                            wanted.OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                            for name, numbers in by_topic.items()
                        ],
                    )
                ],
                require_stable=stable,
            )
        )
        group = answer.groups[0] if answer.groups else answer
        self.raise_for(group.error_code)
        found: dict[TopicPartition, tuple[int, str]] = {}
        unsettled = set()
        for one in group.topics:
            for committed in one.partitions:
                place = TopicPartition(one.name, committed.partition_index)
                if committed.error_code == KafkaError.UNSTABLE_OFFSET_COMMIT:
                    unsettled.add(place)
                    continue
                self.raise_for(committed.error_code)
                if committed.committed_offset >= 0:
                    found[place] = (committed.committed_offset, committed.metadata or "")
        return CommittedOffsets(found, frozenset(unsettled))

    def close(self) -> None:
        """Ends a request that may be under way in another thread, which raises, and closes the connections."""
        with self._lock:
            self._is_closed = True
            connections, self._connections = self._connections, None
            is_asking = self._is_asking
        if connections is None:
            return
        if is_asking:
            connections.interrupt()
        else:
            connections.close()

    def ask(self, request: Any, at_least_s: float = 0) -> Any:
        """Sends a request of the library's, and returns its answer; waits at least so long."""
        timeout_s = max(self._timeout_s, at_least_s)
        return self._answer(lambda connections: connections.ask(self._group.group, request, timeout_s))

    def ask_broker(self, request: Any, broker: int | None = None) -> Any:
        """Sends a request to a broker, to any of them unless one is given, and returns its answer."""
        return self._answer(lambda connections: connections.ask_broker(broker, request, self._timeout_s))

    def _answer(self, ask: Callable[[_Connections], Any]) -> Any:
        with self._lock:
            if self._is_closed:
                raise GroupError(KafkaError(KafkaError._DESTROY, "the connection to the coordinator is closed"))
            unused = None
            if self._clock.monotonic() - self._asked_at > _UNUSED_S:
                unused, self._connections = self._connections, None
            if self._connections is None:
                self._connections = _Connections(self._settings)
            connections = self._connections
            self._is_asking = True
        if unused is not None:
            unused.close()
        try:
            answer = ask(connections)
        except (kafka.errors.KafkaError, OSError, RuntimeError) as error:
            self._asked(connections, has_failed=True)
            raise GroupError(_client_error(error, connections.why_closed)) from error
        self._asked(connections, has_failed=False)
        return answer

    def raise_for(self, code: int) -> None:
        """Raises ``GroupError`` for the code of an error; looks for the coordinator anew where it has moved."""
        if code in _MOVED:
            with self._lock:
                if self._connections is not None:
                    self._connections.forget_coordinator()
        if code:
            raise GroupError(KafkaError(code))

    def _asked(self, connections: _Connections, *, has_failed: bool) -> None:
        with self._lock:
            self._is_asking = False
            self._asked_at = self._clock.monotonic()
            if has_failed and self._connections is connections:
                self._connections = None
            is_over = has_failed or self._is_closed
        if is_over:
            connections.close()


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # of a library without types
    """A manager that remembers why a connection was lost: what it raises does not say.

    That this client was not let in is remembered rather than what came after it.
    """

    failure: BaseException | None = None

    def get_connection(self, node_id: Any, **options: Any) -> Any:
        is_new = node_id not in self._conns
        connection = super().get_connection(node_id, **options)
        if is_new:
            connection.close_future.add_errback(self._remember)
            # the library would pause it, and refuse requests at once; brokers let them wait by themselves (KIP-219)
            connection._maybe_throttle = lambda _: None
        return connection

    def _remember(self, failure: BaseException) -> None:
        if self.failure is None or cure_of(str(self.failure)) is None:
            self.failure = failure

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        """Connects; unlike the library's own, in time, and closes the socket of what has failed."""
        socket = await _connect(self._net, node, self.config["socket_options"], timeout_at)
        if self.ssl_enabled:
            transport = KafkaSSLTransport(self._net, socket, host=node.host, ssl_context=self.config["ssl_context"])
        else:
            transport = KafkaTCPTransport(self._net, socket, host=node.host)
        try:
            if self.ssl_enabled:
                await _handshake(self._net, transport, timeout_at)
        except (OSError, kafka.errors.KafkaTimeoutError) as error:
            transport.close()
            raise kafka.errors.KafkaConnectionError(f"Handshake failed: {error}") from error
        except BaseException:
            transport.close()
            raise
        return transport


async def _connect(net: Any, node: Any, options: Iterable[Any], timeout_at: float | None) -> Any:
    """A socket that is connected to the first address of a node that answers.

    The library's own leaves each socket that was refused open until Python looks for cycles, which a worker does
    seldom: during an outage that would be some for each attempt.
    """
    sockets = KafkaNetSocket()
    failure = "DNS Resolution failure"
    for family, kind, protocol, _, address in sockets.dns_lookup(node.host, node.port):
        socket = sockets.socket(family, kind, protocol)
        try:
            socket.setblocking(False)
            for option in options:
                socket.setsockopt(*option)
            return await sockets.sock_connect(net, socket, address, timeout_at=timeout_at)
        except kafka.errors.KafkaTimeoutError:
            socket.close()
            raise kafka.errors.KafkaConnectionError("Connection timed out") from None
        except (OSError, kafka.errors.KafkaConnectionError) as error:
            socket.close()
            failure = ", ".join(map(str, error.args))
        except BaseException:
            socket.close()
            raise
    raise kafka.errors.KafkaConnectionError(failure)


async def _handshake(net: Any, transport: Any, timeout_at: float | None) -> None:
    """The handshake of TLS; for the library's own, a broker that is frozen has all the time there is."""
    while True:
        try:
            transport._sock.do_handshake()
            return
        except ssl.SSLWantReadError:
            await net.wait_read(transport._sock, timeout_at)
        except ssl.SSLWantWriteError:
            await net.wait_write(transport._sock, timeout_at)


class _Connections:
    """The connections of one member, driven by the thread that asks."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        # 0: no warning of steps that took 0.1 s, which says no more than that the machine is busy
        self._net = NetworkSelector(client_id=settings["client_id"], slow_task_threshold_secs=0)
        # for what the manager does by itself, such as the request after a bootstrap, which heeds no other limit
        limits = dict.fromkeys(("request_timeout_ms", "socket_connection_setup_timeout_ms"), _BOOTSTRAP_S * 1000)
        self._manager = _Manager(self._net, **{**settings, **limits})
        self._coordinator: Any = None
        self._is_closed = False

    @property
    def why_closed(self) -> str:
        """The reason why the last connection that was lost has been; empty where there is none."""
        return str(self._manager.failure or "")

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        return self._net.run(self._ask, group, request, timeout_s)

    def ask_broker(self, broker: int | None, request: Any, timeout_s: float) -> Any:
        return self._net.run(self._ask_broker, broker, request, timeout_s)

    async def _ask(self, group: str, request: Any, timeout_s: float) -> Any:
        await self._bootstrap(timeout_s)
        if self._coordinator is None:
            self._coordinator = await self._find(group, timeout_s)
        return await self._send(request, self._coordinator, timeout_s)

    async def _ask_broker(self, broker: int | None, request: Any, timeout_s: float) -> Any:
        await self._bootstrap(timeout_s)
        return await self._send(request, broker, timeout_s)

    async def _send(self, request: Any, node: Any, timeout_s: float) -> Any:
        if self._manager.closed:  # it would wait without end for a connection that nobody makes any more
            raise kafka.errors.KafkaConnectionError("the connections were closed")
        return await self._manager.send(request, node_id=node, request_timeout_ms=timeout_s * 1000)

    async def _bootstrap(self, timeout_s: float) -> None:
        if not self._manager.bootstrapped:
            await self._manager.bootstrap_async(timeout_ms=min(timeout_s, _BOOTSTRAP_S) * 1000)

    async def _find(self, group: str, timeout_s: float) -> Any:
        find = FindCoordinatorRequest(key=group, key_type=0, coordinator_keys=[group])
        answer = await self._send(find, None, min(timeout_s, _BOOTSTRAP_S))
        found = answer.coordinators[0] if answer.coordinators else answer
        return self._manager.cluster.add_coordinator(found, CoordinatorType.GROUP, group)

    def forget_coordinator(self) -> None:
        self._coordinator = None

    def interrupt(self) -> None:
        """Fails what is asked, from another thread; the thread that asks then closes the rest."""
        _OF_OUR_OWN_DOING.interrupted.add(self)
        try:
            self._net.call_soon_threadsafe(self._manager.close)
        except RuntimeError:  # the answer has come meanwhile, and the thread that asked has closed everything
            _OF_OUR_OWN_DOING.interrupted.discard(self)

    def close(self) -> None:
        """Closes everything; for the thread that asks, or when none does."""
        if not self._is_closed:
            self._is_closed = True
            self._manager.close()
            self._net.drain()
            self._net.close()
            _OF_OUR_OWN_DOING.interrupted.discard(self)


_MOVED: Final = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)


def group_settings(config: StreamsConfig, thread: int | None) -> GroupSettings:
    """Returns what the coordinator is told, from the settings of the consumer with the client's defaults."""
    settings = config.get_main_consumer_configs(config.application_id, "", thread or 1)
    instance = None if thread is None else settings.get("group.instance.id")
    return GroupSettings(
        config.application_id,
        None if instance is None else str(instance),
        int(str(settings.get("session.timeout.ms", 45_000))),
        int(str(settings.get("max.poll.interval.ms", 300_000))),
    )


def _client_error(error: Exception, why_closed: str) -> KafkaError:
    text = str(error) or type(error).__name__
    if why_closed and why_closed not in text:
        text = f"{text}: {why_closed}"
    if cure := cure_of(text):
        text = f"{text}; {cure}"
    code = getattr(error, "errno", None)
    if isinstance(error, kafka.errors.BrokerResponseError) and code is not None:
        return KafkaError(code, text)
    if isinstance(error, kafka.errors.KafkaTimeoutError):
        return KafkaError(KafkaError._TIMED_OUT, text)
    if isinstance(error, kafka.errors.RetriableError | OSError | RuntimeError):
        return KafkaError(KafkaError._TRANSPORT, text)
    return KafkaError(KafkaError._FATAL, text, fatal=True)
