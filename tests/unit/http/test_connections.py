"""Clients that are slow, too many or talk nonsense: each is told so, and nobody else notices."""

from __future__ import annotations

import contextlib
import http.client
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pykstreams.http import HttpServer
from pykstreams.http.connections import SPARE_CONNECTIONS
from tests.brokers.reaper import Process
from tests.brokers.secured import Authority
from tests.unit.http.serving import PATIENCE_S, Serve, answered, connected, get, heard, said, serving
from tests.unit.http.test_store_routes import spread, table
from tests.unit.runtime.queries.queried import Application

ROOT = Path(__file__).parents[3]


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    made = Application(table(), tmp_path, partitions=2).start()
    spread(made, ["tea", "milk"], 2)
    yield made
    made.close()


@pytest.fixture
def serve(application: Application) -> Iterator[Serve]:
    with serving(application) as build:
        yield build


def wait_until(condition: Callable[[], bool], what: str) -> None:
    pause = threading.Event()
    for _ in range(round(PATIENCE_S / 0.01)):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError(what)


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n",  # TLS where there is none
        b"GET\r\n\r\n",
        b"GET /stores\r\n\r\n",
        b"GET /st ores HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /stores\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /stores HTTP/1.1\r\n\r\n",
        b"GET /stores HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET /stores HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"GET /stores HTTP/1.1\r\nHost: x\r\nX-Zero: \x00\r\n\r\n",
        b"GET /stores HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /stores HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /stores HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET /" + b"a" * 400_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /stores HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % one for one in range(50_000)) + b"\r\n",
    ],
    ids=lambda sent: repr(sent[:30]),
)
def test_what_is_no_request_is_a_problem_and_ends_the_connection(serve: Serve, sent: bytes) -> None:
    server = serve()

    answer = said(server.port, sent)

    assert answer is not None
    assert (answer.status, answer.problem, answer.headers["connection"]) == (400, "bad-request", "close")
    assert get(server.port, "/stores").status == 200


@pytest.mark.parametrize(
    "target",
    ["http://elsewhere/stores/prices/keys/tea", "*", "stores", "//etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%00", "/%"],
)
def test_a_target_that_is_no_route_is_a_problem(serve: Serve, target: str) -> None:
    answer = said(serve().port, f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    assert answer is not None
    assert (answer.status, answer.problem) == (404, "not-found")


@pytest.mark.parametrize(
    "headers",
    ["Content-Length: 10000000", "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked"],
)
def test_a_body_that_nobody_reads_is_refused_before_it_comes(serve: Serve, headers: str) -> None:
    answer = said(serve().port, f"GET /stores HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n".encode())

    assert answer is not None
    assert (answer.status, answer.problem, answer.headers["connection"]) == (413, "too-large", "close")


def test_chunks_that_are_none_end_the_connection_only(serve: Serve) -> None:
    server = serve()

    said(server.port, b"GET /stores HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n\r\n")

    assert get(server.port, "/stores").status == 200


@pytest.mark.parametrize("sent", [b"GET /stores HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"G"])
def test_a_client_that_sends_its_request_too_slowly_is_told_so(serve: Serve, sent: bytes) -> None:
    server = serve(client_timeout_ms=500)

    answer = said(server.port, sent)

    assert answer is not None
    assert (answer.status, answer.problem, answer.headers["connection"]) == (408, "too-slow", "close")
    assert get(server.port, "/stores").status == 200


def test_a_client_that_says_nothing_is_cut(serve: Serve) -> None:
    assert said(serve(client_timeout_ms=100).port, b"") is None


def test_a_client_that_never_ends_its_handshake_is_cut(serve: Serve, tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path, "tests").certify("shop")
    server = serve({"certificate": str(certificate), "key": str(key)}, client_timeout_ms=100)

    assert said(server.port, b"") is None


def test_a_client_that_does_not_take_its_answers_is_cut(application: Application, serve: Serve) -> None:
    for number in range(8):
        application.feed((f"wide-{number}", "x" * 1_000_000, 0))
    server = serve(client_timeout_ms=500, timeout_ms=1_000)
    request = b"GET /stores/prices/range HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.socket() as greedy:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.settimeout(PATIENCE_S)
        greedy.connect(("127.0.0.1", server.port))
        greedy.sendall(request)
        assert greedy.recv(1) == b"H"
        greedy.sendall(request)

        wait_until(lambda: open_connections(server) == 0, "it is kept, though it takes nothing")
    assert get(server.port, "/stores").status == 200


def open_connections(server: HttpServer) -> int:
    return len(server._server.server_state.connections)


def test_connections_beyond_the_limit_are_told_so_and_others_go_on(serve: Serve) -> None:
    server = serve(max_connections=3)
    with contextlib.ExitStack() as stack:
        kept = [stack.enter_context(connected(server.port)) for _ in range(3)]
        wait_until(lambda: open_connections(server) == 3, "not all are there")

        for _ in range(20):
            answer = said(server.port, b"GET /stores HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answer is not None
            assert (answer.status, answer.problem, answer.headers["retry-after"]) == (503, "overloaded", "1")

        kept[0].sendall(b"GET /stores HTTP/1.1\r\nHost: x\r\n\r\n")
        found = heard(kept[0])
    assert found is not None
    assert found.status == 200


FLOOD = """
import resource, socket, sys
port, count = map(int, sys.argv[1:])
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = []
for number in range(count):
    one = socket.socket()
    one.settimeout(60)
    try:
        one.connect(("127.0.0.1", port))
        one.send(b"GET /stores HTTP/1.1\\r\\n")
    except OSError:
        pass
    held.append(one)
print(len(held), flush=True)
sys.stdin.read()
"""
"""Opens connections and keeps them, each with half of a request."""


@contextlib.contextmanager
def flood(port: int, count: int) -> Iterator[subprocess.Popen[bytes]]:
    process = Process(
        [sys.executable, "-c", FLOOD, str(port), str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.mark.slow
@pytest.mark.parametrize(("count", "tls"), [(10_000, False), (1_000, True)], ids=["plain", "tls"])
def test_thousands_of_connections_take_few_files_and_disturb_nobody(
    application: Application, serve: Serve, tmp_path: Path, count: int, tls: bool
) -> None:
    most = 100
    authority = Authority(tmp_path, "tests")
    certificate, key = authority.certify("shop")
    server = serve({"certificate": str(certificate), "key": str(key)} if tls else None, max_connections=most)
    kept = connection_to(server, authority.certificate if tls else None)
    kept.connect()
    before, highest = open_files(), 0

    with flood(server.port, count) as process:
        number = 0
        while not is_done(process):
            number += 1
            application.feed(("tea", f"v-{number}", number))
            kept.request("GET", "/stores/prices/keys/tea?partition=0")
            answer = answered(kept.getresponse())
            assert (answer.status, answer.json["value"]) == (200, f"v-{number}")
            highest = max(highest, open_files() - before)

    kept.close()
    assert most / 2 < highest <= most + SPARE_CONNECTIONS + 5


def is_done(process: subprocess.Popen[bytes]) -> bool:
    """Whether the flood has opened all of its connections."""
    assert process.poll() is None
    assert process.stdout is not None
    return bool(select.select([process.stdout], [], [], 0)[0])


def connection_to(server: HttpServer, authority: Path | None) -> http.client.HTTPConnection:
    if authority is None:
        return http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    context = ssl.create_default_context(cafile=authority)
    return http.client.HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_S, context=context)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
