"""A server over tasks of a topology, and a client that says to it what it likes."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pykstreams.http import Address, HttpOptions, HttpServer, app
from pykstreams.http.server import bound
from tests.unit.http.served_application import Answered, Streams
from tests.unit.runtime.queries.queried import Application

PATIENCE_S = 20.0

Serve = Callable[..., HttpServer]


@contextmanager
def serving(application: Application) -> Iterator[Serve]:
    """Makes servers of an application, by the options of each; they end with the block."""
    made: list[HttpServer] = []

    def build(tls: dict[str, str] | None = None, at: str = ":0", **options: Any) -> HttpServer:
        chosen = HttpOptions(**options)
        served = app(Streams(application), options=chosen)
        made.append(HttpServer(served, bound(Address.parse(at)), chosen, **(tls or {})))
        made[-1].start()
        return made[-1]

    try:
        yield build
    finally:
        for one in made:
            one.close()


def get(port: int, target: str, method: str = "GET", **headers: str) -> Answered:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(method, target, headers=headers)
        return answered(connection.getresponse())
    finally:
        connection.close()


def answered(answer: http.client.HTTPResponse) -> Answered:
    return Answered(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def said(port: int, sent: bytes) -> Answered | None:
    """What is answered to these bytes; ``None`` when the connection is closed without a word."""
    with connected(port) as raw:
        raw.sendall(sent)
        return heard(raw)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def heard(raw: socket.socket) -> Answered | None:
    """The answer that comes at a socket; ``None`` when it is closed without one."""
    answer = http.client.HTTPResponse(raw)
    try:
        answer.begin()
    except (http.client.RemoteDisconnected, ConnectionResetError):
        return None
    return answered(answer)
