"""The server in a process of its own: it answers as the one in a thread does, and ends with the worker."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pykstreams.core.errors import ConfigError
from pykstreams.http import Address, HttpOptions, HttpServerProcess, app
from pykstreams.http.process.messages import CLOSE, SERVE, HowToServe, frame
from pykstreams.http.server import bound
from tests.process_tree import children, ended
from tests.unit.http.served_application import Answered, Streams
from tests.unit.http.serving import PATIENCE_S, connected, get, heard
from tests.unit.http.test_store_routes import spread, table
from tests.unit.runtime.queries.queried import Application

KEYS = ["tea", "milk", "a/b c", "ü"]

Serve = Callable[..., HttpServerProcess]


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    made = Application(table(), tmp_path, partitions=2).start()
    spread(made, KEYS, 2)
    yield made
    made.close()


@pytest.fixture
def serve(application: Application) -> Iterator[Serve]:
    made: list[HttpServerProcess] = []

    def build(tls: dict[str, str] | None = None, **options: object) -> HttpServerProcess:
        chosen = HttpOptions(**options)  # type: ignore[arg-type]  # of the options themselves
        served = app(Streams(application), options=chosen, metrics=lambda: (b"up 1\n", "text/plain; version=0.0.4"))
        made.append(HttpServerProcess(served, bound(Address.parse(":0")), chosen, **(tls or {})))
        return made[-1]

    yield build
    for one in made:
        one.close()


def started(server: HttpServerProcess) -> int:
    server.start()
    return server.port


def process_of(server: HttpServerProcess) -> int:
    """The id of the process that serves."""
    until(lambda: get(server.port, "/health/live").status == 200, "it does not start")
    (found,) = servers_below(os.getpid())
    return found


def servers_below(pid: int) -> list[int]:
    return [one for one in children(pid) if b"pykstreams.http.process" in Path(f"/proc/{one}/cmdline").read_bytes()]


def until(condition: Callable[[], object], what: str) -> None:
    for _ in range(int(PATIENCE_S * 100)):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError(what)


def test_server_says_its_port(serve: Serve) -> None:
    server = serve()

    assert repr(server) == f"<HttpServerProcess at port {server.port}>"


def test_keys_ranges_health_pages_and_metrics_are_answered(serve: Serve) -> None:
    port = started(serve(default_rows=2))

    for key, target in (("tea", "tea"), ("a/b c", "a/b%20c"), ("ü", "%C3%BC")):
        answer = get(port, f"/stores/prices/keys/{target}")
        assert (answer.json["key"], answer.json["value"]) == (key, f"v-{key}")
        assert answer.headers["content-type"] == "application/json"
    rows = get(port, "/stores/prices/range").json
    assert (len(rows["rows"]), rows["next"] is None) == (2, False)
    assert get(port, "/health/live").json["alive"] is True
    assert get(port, "/metrics").body == b"up 1\n"
    assert get(port, "/live/page.js").headers["content-type"].startswith("text/javascript")
    assert get(port, "/stores/prices/keys/tea", "HEAD").body == b""


def test_problems_are_the_same_as_those_of_the_thread(serve: Serve) -> None:
    port = started(serve(token="secret"))

    def problem(target: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        answer = get(port, target, method, **headers)
        return answer.status, answer.problem

    allowed = {"Authorization": "Bearer secret"}
    assert problem("/stores/prices/keys/tea") == (401, "unauthorized")
    assert problem("/stores/prices/keys/coffee", **allowed) == (404, "no-such-key")
    assert problem("/stores/nothing/keys/tea", **allowed) == (404, "unknown-store")
    assert problem("/stores/prices/keys/tea?what=1", **allowed) == (400, "bad-request")
    assert problem("/stores/prices/keys/tea?position=5", **allowed) == (400, "bad-request")
    assert problem("/stores/prices/keys/%FF", **allowed) == (400, "bad-request")
    assert problem("/stores/prices/keys?key=%FF", **allowed) == (400, "bad-request")
    assert problem("/nothing", **allowed) == (404, "not-found")
    assert problem("/stores/prices/keys/tea", "POST", **allowed) == (405, "method")


def test_a_batch_of_the_worker_is_waited_for_and_others_are_answered_meanwhile(
    serve: Serve, application: Application
) -> None:
    port = started(serve())
    places = {key: get_partition(port, key) for key in ("tea", "milk")}
    assert places == {"tea": 0, "milk": 1}
    gate = application.by_partition[0].gate

    with connected(port) as waiting:
        with gate:
            waiting.sendall(b"GET /stores/prices/keys/tea HTTP/1.1\r\nHost: x\r\n\r\n")
            assert get(port, "/stores/prices/keys/milk").status == 200
            assert get(port, "/health/ready").status == 200
            until(gate.was_waited_for, "the request did not come to the gate")
        answer = heard(waiting)

    assert answer is not None and answer.json["value"] == "v-tea"


def get_partition(port: int, key: str) -> int:
    return int(get(port, f"/stores/prices/keys/{key}").json["from"]["partition"])


def test_a_request_that_takes_too_long_gets_a_problem(serve: Serve, application: Application) -> None:
    port = started(serve(timeout_ms=100))
    number = get_partition(port, "tea")

    with application.by_partition[number].gate:
        answer = get(port, "/stores/prices/keys/tea")
    assert (answer.status, answer.problem) == (504, "timeout")
    assert get(port, "/stores/prices/keys/tea").status == 200


def test_a_process_that_was_killed_is_started_again_at_the_same_address(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve()
    port = started(server)
    before = process_of(server)

    os.kill(before, signal.SIGKILL)
    until(lambda: "it is started again" in caplog.text, "nobody noticed its end")
    answer = get(port, "/stores/prices/keys/tea")  # waits in the backlog of the socket until somebody accepts it

    assert answer.json["value"] == "v-tea"
    assert process_of(server) != before
    assert f"port {port} ended by itself with code -9; it is started again" in caplog.text


def test_close_ends_the_process_and_frees_the_address(serve: Serve) -> None:
    server = serve()
    started(server)
    process = process_of(server)

    server.close()

    assert ended(process)
    with bound(Address("127.0.0.1", server.port)):
        pass


def test_a_process_that_has_to_end_before_it_has_started_ends() -> None:
    """Both messages lie in its socket when it begins to read."""
    ours, theirs = socket.socketpair()
    with ours, theirs, bound(Address.parse(":0")) as listening:
        listening.listen()
        how = HowToServe(options=dataclasses.asdict(HttpOptions()), certificate=None, key=None)
        ours.sendall(frame(SERVE, how) + frame(CLOSE))
        descriptors = listening.fileno(), theirs.fileno()
        command = [sys.executable, "-m", "pykstreams.http.process", *map(str, descriptors)]
        process = subprocess.Popen(command, pass_fds=descriptors, env=os.environ)
        try:
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait()


def test_signals_to_the_group_of_a_terminal_do_not_end_it(serve: Serve) -> None:
    server = serve()
    port = started(server)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(process_of(server), number)
    assert get(port, "/health/live").status == 200


def test_ctrl_c_in_the_terminal_of_the_worker_does_not_come_to_it_while_it_still_imports(serve: Serve) -> None:
    server = serve()
    started(server)

    assert os.getpgid(process_of(server)) != os.getpgid(0)


def test_files_that_serve_no_tls_are_refused_when_it_starts(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    files = {"certificate": str(tmp_path / "empty.pem"), "key": str(tmp_path / "empty.pem")}
    with pytest.raises(ConfigError, match=r"TLS cannot be served with certificate .*empty\.pem"):
        serve(files).start()


WORKER = """
import sys
from pathlib import Path
from pykstreams.http import Address, HttpOptions, HttpServerProcess, app
from pykstreams.http.server import bound
from tests.unit.http.served_application import Streams
from tests.unit.http.test_store_routes import table
from tests.unit.runtime.queries.queried import Application

application = Application(table(), Path(sys.argv[1])).start()
options = HttpOptions(health_timeout_ms=1_000)
server = HttpServerProcess(app(Streams(application), options=options), bound(Address.parse(":0")), options)
server.start()
print(server.port, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A worker in a process of its own, and the port at which it is asked."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    )
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def test_it_ends_when_its_worker_is_killed(worker: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = worker
    until(lambda: get(port, "/health/live").status == 200, "it does not start")
    (server,) = servers_below(process.pid)

    process.kill()
    process.communicate()

    until(lambda: ended(server), "it goes on without its worker")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_health_of_a_worker_that_is_stopped_is_told_before_a_probe_has_gone(
    worker: tuple[subprocess.Popen[bytes], int], path: str
) -> None:
    process, port = worker
    until(lambda: get(port, path).status == 200, "it does not start")

    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)  # until it has stopped
    stopped = get(port, path)
    process.send_signal(signal.SIGCONT)

    assert (stopped.status, stopped.problem) == (503, "unavailable")
    assert "the worker behind this server did not answer in 1 s" in stopped.json["detail"]
    until(lambda: get(port, path).status == 200, "it is not asked again")


def test_answers_of_several_clients_are_not_mixed_up(serve: Serve) -> None:
    port = started(serve())
    wrong: list[Answered] = []

    def ask(key: str) -> None:
        for _ in range(50):
            answer = get(port, f"/stores/prices/keys/{key}")
            if answer.json["value"] != f"v-{key}":
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(key,)) for key in ("tea", "milk", "tea", "milk")]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE_S)
    assert not wrong
