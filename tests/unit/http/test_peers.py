"""Questions to other instances: which connections are kept, and how long one that is late is waited for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from pykstreams.http import HttpOptions
from pykstreams.http.peers import Peers
from pykstreams.http.problems import ProblemError
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.testing.clock import MockClock
from tests.unit.http.serving import PATIENCE_S

BODY = b'{"parts":[]}'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(BODY)


class Peer:
    """Another instance, which does what the test says."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(PATIENCE_S)
        self.host = HostInfo("127.0.0.1", self._server.getsockname()[1])
        self.accepted: list[socket.socket] = []

    def asked(self) -> socket.socket:
        """Accepts a connection, and reads a question from it."""
        connection, _ = self._server.accept()
        connection.settimeout(PATIENCE_S)
        self.accepted.append(connection)
        self.hear(connection)
        return connection

    def hear(self, connection: socket.socket) -> None:
        """Reads a question."""
        data = b""
        while not data.endswith(b"\r\n\r\n"):
            data += connection.recv(1 << 16)
            assert data, "the connection was closed"

    def is_asked_anew(self) -> bool:
        """Whether somebody waits to be accepted."""
        self._server.setblocking(False)
        try:
            self.accepted.append(self._server.accept()[0])
        except BlockingIOError:
            return False
        finally:
            self._server.settimeout(PATIENCE_S)
        return True

    def close(self) -> None:
        for one in (self._server, *self.accepted):
            one.close()


@pytest.fixture
def clock() -> MockClock:
    return MockClock(0)


@pytest.fixture
def peers(clock: MockClock) -> Iterator[Peers]:
    made = Peers(HttpOptions(peer_timeout_ms=int(PATIENCE_S * 1000)), clock, most_late=2)
    yield made
    made.close()


@pytest.fixture
def one() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.close()


@pytest.fixture
def another() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as made:
        yield made


def problem_of(asked: Future[object]) -> ProblemError:
    error = asked.exception(PATIENCE_S)
    assert isinstance(error, ProblemError)
    return error


def test_the_connection_of_an_answer_is_kept_for_the_next_question(
    peers: Peers, one: Peer, threads: ThreadPoolExecutor
) -> None:
    first = threads.submit(peers.ask, one.host, "/stores")
    connection = one.asked()
    connection.sendall(HEAD + BODY)
    assert first.result(PATIENCE_S) == {"parts": []}

    second = threads.submit(peers.ask, one.host, "/stores")
    one.hear(connection)
    connection.sendall(HEAD + BODY)

    assert second.result(PATIENCE_S) == {"parts": []}
    assert not one.is_asked_anew()


def test_a_connection_that_was_closed_meanwhile_is_made_anew(
    peers: Peers, one: Peer, threads: ThreadPoolExecutor
) -> None:
    first = threads.submit(peers.ask, one.host, "/stores")
    connection = one.asked()
    connection.sendall(HEAD + BODY)
    first.result(PATIENCE_S)
    connection.close()

    second = threads.submit(peers.ask, one.host, "/stores")
    one.asked().sendall(HEAD + BODY)

    assert second.result(PATIENCE_S) == {"parts": []}


def test_connections_to_instances_that_have_gone_are_closed(
    peers: Peers, one: Peer, another: Peer, clock: MockClock, threads: ThreadPoolExecutor
) -> None:
    """Instances come at ports and addresses of their own all the time, and nobody asks for those that were."""
    first = threads.submit(peers.ask, one.host, "/stores")
    gone = one.asked()
    gone.sendall(HEAD + BODY)
    first.result(PATIENCE_S)

    clock.advance(HttpOptions().client_timeout_ms + 1)
    second = threads.submit(peers.ask, another.host, "/stores")
    another.asked().sendall(HEAD + BODY)
    second.result(PATIENCE_S)

    assert gone.recv(1) == b""


def test_an_answer_that_comes_bit_by_bit_is_given_up_in_time(
    peers: Peers, one: Peer, clock: MockClock, threads: ThreadPoolExecutor
) -> None:
    asked = threads.submit(peers.ask, one.host, "/stores")
    connection = one.asked()
    connection.sendall(HEAD)
    clock.advance(int(PATIENCE_S * 1000) + 1)
    connection.sendall(BODY[:1])

    problem = problem_of(asked)
    assert problem.kind == "unavailable"
    assert "its answer was not whole in 20 s" in problem.detail
    assert connection.recv(1) == b""


def test_an_answer_that_is_cut_off_is_that_of_an_instance_that_is_away(
    peers: Peers, one: Peer, threads: ThreadPoolExecutor
) -> None:
    asked = threads.submit(peers.ask, one.host, "/stores")
    connection = one.asked()
    connection.sendall(HEAD + BODY[:5])
    connection.close()

    assert problem_of(asked).kind == "unavailable"


def test_an_instance_that_was_late_keeps_few_questions_waiting_until_it_answers(
    peers: Peers, one: Peer, clock: MockClock, threads: ThreadPoolExecutor
) -> None:
    late = threads.submit(peers.ask, one.host, "/stores")
    connection = one.asked()
    connection.sendall(HEAD)
    clock.advance(int(PATIENCE_S * 1000) + 1)
    connection.sendall(BODY[:1])
    problem_of(late)

    waiting = [threads.submit(peers.ask, one.host, "/stores") for _ in range(2)]
    connections = [one.asked() for _ in waiting]
    refused = problem_of(threads.submit(peers.ask, one.host, "/stores"))
    for each in connections:
        each.sendall(HEAD + BODY)

    assert refused.kind == "unavailable"
    assert f"{one.host.port} has not answered in time, and 2 questions wait for it already" in refused.detail
    assert [each.result(PATIENCE_S) for each in waiting] == [{"parts": []}] * 2
    more = [threads.submit(peers.ask, one.host, "/stores") for _ in range(3)]
    for each in connections:
        one.hear(each)
    connections.append(one.asked())
    for each in connections:
        each.sendall(HEAD + BODY)
    assert [each.result(PATIENCE_S) for each in more] == [{"parts": []}] * 3


def test_an_instance_whose_name_is_looked_up_for_too_long_is_late(
    peers: Peers, clock: MockClock, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up, go_on = threading.Semaphore(0), threading.Event()
    look_up, slow = socket.getaddrinfo, HostInfo("slow.test", 80)

    def fail(host: str, *rest: int) -> object:
        if host != slow.host:
            return look_up(host, *rest)
        looked_up.release()
        assert go_on.wait(PATIENCE_S)
        clock.advance(int(PATIENCE_S * 1000) + 1)
        raise socket.gaierror(socket.EAI_AGAIN, "no server of names has answered")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    go_on.set()
    assert "no server of names" in problem_of(threads.submit(peers.ask, slow, "/stores")).detail

    go_on.clear()
    waiting = [threads.submit(peers.ask, slow, "/stores") for _ in range(2)]
    for _ in range(3):
        assert looked_up.acquire(timeout=PATIENCE_S)
    refused = problem_of(threads.submit(peers.ask, slow, "/stores"))
    go_on.set()

    assert "has not answered in time, and 2 questions wait for it already" in refused.detail
    assert [problem_of(each).kind for each in waiting] == ["unavailable"] * 2


def test_an_instance_that_was_not_late_may_be_asked_by_all(
    peers: Peers, one: Peer, threads: ThreadPoolExecutor
) -> None:
    asked = [threads.submit(peers.ask, one.host, "/stores") for _ in range(5)]
    for connection in [one.asked() for _ in asked]:
        connection.sendall(HEAD + BODY)

    assert [each.result(PATIENCE_S) for each in asked] == [{"parts": []}] * 5
