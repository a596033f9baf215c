"""Requests to the coordinator of a group, on an embedded cluster and without one that answers."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError
from kafka.net import selector
from kafka.net.inet import KafkaNetSocket
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.consumer import HeartbeatRequest

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.coordinators import coordinator_requests
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings, MemberOf
from pykstreams.runtime.clients.coordinators.group_coordinator import GroupCoordinator, Joined, NamedFirst
from pykstreams.runtime.clients.coordinators.wire_settings import wire_settings
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.clients.positions import CommittedOffsets
from pykstreams.testing.clock import MockClock

GROUP = GroupSettings("app", None, 6_000, 10_000)


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as found:
        found.create_topics("a")
        yield found


def connected(servers: str, *, embedded: bool = True, timeout_s: float = 5) -> GroupCoordinator:
    settings = wire_settings({"bootstrap.servers": servers, "client.id": "test"}, embedded=embedded)
    return GroupCoordinator(settings, GROUP, timeout_s)


def over_tls(port: int, timeout_s: float) -> GroupCoordinator:
    settings = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "ssl",
        "enable.ssl.certificate.verification": False,
    }
    return GroupCoordinator(wire_settings(settings, embedded=False), GROUP, timeout_s)


def connections_of(coordinator: GroupCoordinator) -> list[Any]:
    connections = coordinator._connections
    assert connections is not None
    return list(connections._manager._conns.values())


def test_a_member_joins_leads_commits_and_leaves(cluster: EmbeddedCluster) -> None:
    coordinator = connected(cluster.bootstrap_servers)
    joined = coordinator.join("", b"said")
    assert isinstance(joined, Joined)  # this cluster does not name members first
    assert joined.leader == joined.member.member_id
    assert joined.subscriptions == {joined.leader: b"said"}
    assert coordinator.sync(joined.member, {joined.leader: b"given"}) == b"given"
    coordinator.heartbeat(joined.member)
    place, other = TopicPartition("a", 0), TopicPartition("a", 1)
    coordinator.commit(joined.member, {place: (7, "metadata")})
    assert coordinator.committed([place, other]) == {place: (7, "metadata")}
    coordinator.leave(joined.leader, "done")
    with pytest.raises(GroupError, match="UNKNOWN_MEMBER_ID"):
        coordinator.heartbeat(joined.member)
    coordinator.close()
    with pytest.raises(GroupError, match="_DESTROY"):
        coordinator.heartbeat(joined.member)


def test_a_coordinator_that_says_nothing_has_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        coordinator = connected(f"127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.3)
        with pytest.raises(GroupError) as raised:
            coordinator.heartbeat(MemberOf(1, "me"))
        coordinator.close()
    assert raised.value.name == "_TIMED_OUT"


def test_a_handshake_that_is_not_answered_has_its_time() -> None:
    """As of a broker that is frozen, or of a load balancer that has none to pass a client on to."""
    raised: list[GroupError] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        coordinator = over_tls(silent.getsockname()[1], 0.3)

        def ask() -> None:
            with pytest.raises(GroupError) as found:
                coordinator.heartbeat(MemberOf(1, "me"))
            raised.append(found.value)

        asks = Thread(target=ask, daemon=True)
        asks.start()
        asks.join(4)
        in_time = list(raised)
        coordinator.close()
        asks.join(4)

    assert [error.name for error in in_time] == ["_TIMED_OUT"]
    assert "Handshake failed" in str(in_time[0])


def test_a_connection_to_a_coordinator_is_made_in_the_time_of_a_bootstrap() -> None:
    connections = coordinator_requests._Connections(connected("127.0.0.1:1")._settings)
    setup_ms = connections._manager.socket_connection_setup_timeout_ms(1)
    connections.close()

    assert setup_ms == 5_000


def test_closing_during_a_handshake_closes_its_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        coordinator = over_tls(silent.getsockname()[1], 30)

        def ask() -> None:
            with pytest.raises(GroupError):
                coordinator.heartbeat(MemberOf(1, "me"))

        asks = Thread(target=ask, daemon=True)
        asks.start()
        with silent.accept()[0] as accepted:
            accepted.settimeout(4)
            assert accepted.recv(1 << 16)  # it has begun
            coordinator.close()
            asks.join(4)
            assert accepted.recv(1 << 16) == b""


def test_a_request_after_a_throttled_answer_goes_over_the_same_connection(cluster: EmbeddedCluster) -> None:
    """Such as the sync after a join. Brokers let it wait by themselves (KIP-219)."""
    coordinator = connected(cluster.bootstrap_servers)
    place = TopicPartition("a", 0)
    committed = coordinator.committed([place])
    before = connections_of(coordinator)
    for connection in before:
        versions = connection.broker_version_data.api_versions
        connection.broker_version_data = BrokerVersionData((2, 0), versions)  # older ones wait before they answer
        connection._maybe_throttle(SimpleNamespace(throttle_time_ms=60_000))

    assert coordinator.committed([place]) == committed
    assert connections_of(coordinator) == before
    coordinator.close()


def test_requests_leave_nothing_behind_on_their_connection(cluster: EmbeddedCluster) -> None:
    coordinator = connected(cluster.bootstrap_servers)
    waiting: list[list[int]] = []
    for _ in range(3):
        coordinator.committed([TopicPartition("a", 0)])
        waiting.append([len(one.close_future._errbacks) for one in connections_of(coordinator)])
    coordinator.close()

    assert waiting[0] == waiting[1] == waiting[2]


def test_a_connection_that_is_refused_leaves_no_socket_open(monkeypatch: pytest.MonkeyPatch) -> None:
    sockets: list[socket.socket] = []
    make = KafkaNetSocket.socket

    def kept(*arguments: Any) -> socket.socket:
        sockets.append(make(*arguments))
        return sockets[-1]

    monkeypatch.setattr(KafkaNetSocket, "socket", kept)
    coordinator = connected("127.0.0.1:1", timeout_s=0.3)
    with pytest.raises(GroupError, match="ECONNREFUSED"):
        coordinator.heartbeat(MemberOf(1, "me"))
    coordinator.close()

    assert sockets
    assert [one for one in sockets if one.fileno() != -1] == []


def test_a_busy_machine_is_no_warning(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(selector, "time", SimpleNamespace(monotonic=lambda: next(ticks) * 0.2))
    coordinator = connected("127.0.0.1:1", timeout_s=0.3)
    with pytest.raises(GroupError):
        coordinator.heartbeat(MemberOf(1, "me"))
    coordinator.close()

    assert next(ticks) > 10
    assert [one for one in caplog.messages if "event loop" in one] == []


def greet_only(door: socket.socket, broker: str) -> None:
    """Passes on what one client says to a broker, and of what that says the first answer only."""
    host, _, port = broker.rpartition(":")
    with door.accept()[0] as client, socket.create_connection((host, int(port))) as there:
        there.sendall(client.recv(1 << 16))
        client.sendall(there.recv(1 << 16))
        while client.recv(1 << 16):
            pass


def test_a_broker_that_answers_no_more_after_its_greeting_has_the_time_of_a_bootstrap(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_requests, "_BOOTSTRAP_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as door:
        Thread(target=greet_only, args=(door, cluster.bootstrap_servers), daemon=True).start()
        coordinator = connected(f"127.0.0.1:{door.getsockname()[1]}", timeout_s=0.3)
        with pytest.raises(GroupError, match=r"Request timed out after (299|300) ms"):
            coordinator.heartbeat(MemberOf(1, "me"))
        coordinator.close()


class MovedConnections:
    """A coordinator that has moved: what it answers says so for each partition."""

    def __init__(self) -> None:
        self.forgot = Event()

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        moved = SimpleNamespace(error_code=KafkaError.NOT_COORDINATOR)
        return SimpleNamespace(topics=[SimpleNamespace(partitions=[moved])])

    def forget_coordinator(self) -> None:
        self.forgot.set()

    def close(self) -> None: ...


def test_a_commit_that_the_former_coordinator_refuses_looks_for_the_new_one() -> None:
    coordinator = connected("127.0.0.1:1")
    connections = MovedConnections()
    coordinator._connections = cast("Any", connections)
    with pytest.raises(GroupError, match="NOT_COORDINATOR"):
        coordinator.commit(MemberOf(1, "me"), {TopicPartition("a", 0): (1, "")})
    assert connections.forgot.is_set()


class NamingConnections(MovedConnections):
    """A coordinator that wants to know a member before this one makes others wait (KIP-394)."""

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        return SimpleNamespace(error_code=KafkaError.MEMBER_ID_REQUIRED, member_id="me")


def test_a_member_is_told_the_id_to_join_under() -> None:
    coordinator = connected("127.0.0.1:1")
    coordinator._connections = cast("Any", NamingConnections())
    assert coordinator.join("", b"said") == NamedFirst("me")


class HangingTransaction(MovedConnections):
    """A coordinator that has offsets of topic a, of which that of one partition is in an open transaction."""

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        errors = {0: KafkaError.NO_ERROR, 1: KafkaError.UNSTABLE_OFFSET_COMMIT}
        return SimpleNamespace(
            groups=[],
            error_code=0,
            topics=[
                SimpleNamespace(
                    name="a",
                    partitions=[
                        SimpleNamespace(partition_index=number, error_code=code, committed_offset=7, metadata="m")
                        for number, code in errors.items()
                    ],
                )
            ],
        )


def test_an_offset_in_an_open_transaction_is_named_and_the_others_are_told() -> None:
    coordinator = connected("127.0.0.1:1")
    coordinator._connections = cast("Any", HangingTransaction())
    settled, other = TopicPartition("a", 0), TopicPartition("a", 1)

    assert coordinator.settled([settled, other]) == CommittedOffsets({settled: (7, "m")}, frozenset({other}))
    with pytest.raises(GroupError, match="UNSTABLE_OFFSET_COMMIT"):
        coordinator.committed([settled, other])


class OpenConnections(MovedConnections):
    """Connections that answer, and note that they were closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = Event()

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        return SimpleNamespace(topics=[])

    def close(self) -> None:
        self.closed.set()


def test_connections_that_brokers_may_have_closed_are_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, old, new = MockClock(), OpenConnections(), OpenConnections()
    monkeypatch.setattr(coordinator_requests, "_Connections", lambda _: new)
    settings = wire_settings({"bootstrap.servers": "127.0.0.1:1", "client.id": "test"}, embedded=False)
    coordinator = GroupCoordinator(settings, GroupSettings("app", None, 6_000, 10_000), 1, clock)
    coordinator._connections = cast("Any", old)
    clock.advance(240_000)
    coordinator.commit(MemberOf(1, "me"), {})
    assert not old.closed.is_set()
    clock.advance(240_001)
    coordinator.commit(MemberOf(1, "me"), {})

    assert old.closed.is_set()
    assert coordinator._connections is cast("Any", new)


def test_closing_ends_a_join_that_waits_and_nothing_is_logged_as_an_error(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        coordinator = connected(f"127.0.0.1:{silent.getsockname()[1]}")
        raised: list[GroupError] = []

        def join() -> None:
            with pytest.raises(GroupError) as found:
                coordinator.join("", b"said")
            raised.append(found.value)

        asks = Thread(target=join, daemon=True)
        asks.start()
        accepted, _ = silent.accept()
        coordinator.close()
        asks.join(4)
        accepted.close()
    assert len(raised) == 1
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


class JustAnswered(coordinator_requests._Connections):
    """Connections whose request ends by itself while they are being interrupted: the thread that asks closes them."""

    def interrupt(self) -> None:
        self.close()
        super().interrupt()


def test_closing_while_a_request_ends_by_itself_closes_all_the_same_and_the_library_may_speak_again() -> None:
    coordinator = connected("127.0.0.1:1")
    connections = JustAnswered(coordinator._settings)
    coordinator._connections, coordinator._is_asking = connections, True

    coordinator.close()

    assert connections not in coordinator_requests._OF_OUR_OWN_DOING.interrupted


class InterruptedFirst(coordinator_requests._Connections):
    """Connections that are interrupted before the next request begins, as the thread that asks may be that slow."""

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        self.interrupt()
        return super().ask(group, request, timeout_s)


def test_a_request_that_begins_while_the_connections_are_closed_ends_at_once(cluster: EmbeddedCluster) -> None:
    coordinator = connected(cluster.bootstrap_servers)
    coordinator._connections = connections = InterruptedFirst(coordinator._settings)
    coordinator_requests._Connections.ask(connections, "app", HeartbeatRequest(max_version=4, group_id="app"), 5)
    raised: list[GroupError] = []

    def ask() -> None:
        with pytest.raises(GroupError) as found:
            coordinator.heartbeat(MemberOf(1, "me"))
        raised.append(found.value)

    asks = Thread(target=ask, daemon=True)
    asks.start()
    asks.join(4)

    assert [error.name for error in raised] == ["_TRANSPORT"]


class LateConnections(MovedConnections):
    """An embedded cluster whose group has its assignments already."""

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        return SimpleNamespace(error_code=KafkaError.INVALID_REQUEST, assignment=b"")


def test_a_follower_that_asks_an_embedded_cluster_too_late_joins_again() -> None:
    coordinator = connected("127.0.0.1:1")
    coordinator._connections = cast("Any", LateConnections())

    with pytest.raises(GroupError) as raised:
        coordinator.sync(MemberOf(1, "me"), {})
    assert raised.value.name == "REBALANCE_IN_PROGRESS"


class PromptConnections(MovedConnections):
    """A coordinator that answers at once; it notes for how long each answer would have been waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.patience_s: list[float] = []

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        self.patience_s.append(timeout_s)
        return SimpleNamespace(error_code=0, assignment=b"given")


def test_a_sync_waits_little_longer_than_the_group_waits_for_a_leader_that_falls_silent() -> None:
    """A coordinator that vanishes does not answer either, and others may have the tasks when the session is over."""
    coordinator = connected("127.0.0.1:1")
    connections = PromptConnections()
    coordinator._connections = cast("Any", connections)

    assert coordinator.sync(MemberOf(1, "me"), {}) == b"given"
    assert connections.patience_s == [6 + 5]
