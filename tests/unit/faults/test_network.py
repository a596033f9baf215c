"""The proxy between workers and brokers: who is cut off gets nothing, keeps its connection, and goes on afterwards."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.faults.network import Network

PATIENCE_S = 10.0
A_WHILE_S = 0.2

pytestmark = pytest.mark.skipif(not Network.possible, reason="the network can be cut on Linux only")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connected(stack: ExitStack) -> tuple[Network, socket.socket, socket.socket]:
    """A network, this process's end of a connection, and the other one."""
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    server.settimeout(PATIENCE_S)
    network = stack.enter_context(Network.started(1, lambda: {os.getpid(): "me"}))
    network.lead_to([server.getsockname()[1]])
    here = stack.enter_context(socket.create_connection(("127.0.0.1", network.ports[0]), PATIENCE_S))
    there = stack.enter_context(server.accept()[0])
    there.settimeout(PATIENCE_S)
    return network, here, there


def test_what_is_sent_arrives_on_both_sides(stack: ExitStack) -> None:
    _, here, there = connected(stack)
    here.sendall(b"question")
    assert there.recv(100) == b"question"
    there.sendall(b"answer")

    assert here.recv(100) == b"answer"


def test_who_is_cut_off_is_told_nothing_and_gets_everything_afterwards(stack: ExitStack) -> None:
    network, here, there = connected(stack)
    network.cut("me")
    here.sendall(b"question")
    there.settimeout(A_WHILE_S)
    with pytest.raises(TimeoutError):
        there.recv(100)
    there.settimeout(PATIENCE_S)
    network.mend("me")

    assert there.recv(100) == b"question"


def test_others_are_not_cut_off(stack: ExitStack) -> None:
    network, here, there = connected(stack)
    network.cut("another")
    here.sendall(b"question")

    assert there.recv(100) == b"question"


def test_the_end_of_a_connection_is_passed_on(stack: ExitStack) -> None:
    _, here, there = connected(stack)
    here.close()

    assert there.recv(100) == b""
