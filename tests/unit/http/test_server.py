"""The server: health, tokens, limits, its description, and where it may be bound."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import ipaddress
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from pykstreams.core.errors import ConfigError
from pykstreams.core.ids import TaskId
from pykstreams.http import Address, HttpApp, HttpOptions, HttpServer, app
from pykstreams.http.options import LOOPBACK
from pykstreams.http.parameters import Parameter
from pykstreams.http.server import bound
from pykstreams.runtime.health import TaskHealth
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.tasks import gate
from tests.unit.http.served_application import Answered, Client, Replies, Streams, client_of, lookups
from tests.unit.http.serving import PATIENCE_S, Serve, get, serving
from tests.unit.http.test_store_routes import spread, table
from tests.unit.runtime.queries.queried import Application

SIOCGIFADDR = 0x8915
"""Asks for the address of an interface (netdevice(7))."""

LISTENING = "0A"
"""A state in /proc/net/tcp (proc_net(5))."""


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


def test_health_is_what_orchestrators_ask_for(application: Application) -> None:
    streams = Streams(application)
    client = Client(app(streams, options=HttpOptions(token="secret")))  # health needs no token
    assert (client.get("/health/live").status, client.get("/health/ready").status) == (200, 200)

    streams.state, streams.tasks = (
        State.REBALANCING,
        {TaskId(0, 0): TaskHealth(True, 0), TaskId(0, 1): TaskHealth(False, 42)},
    )
    assert client.get("/health/live").status == 200
    ready = client.get("/health/ready")
    assert ready.status == 503
    assert ready.json == {
        "ready": False,
        "alive": True,
        "state": "rebalancing",
        "stuck": {},
        "paused": False,
        "running": 1,
        "restoring": 1,
        "remaining": 42,
        "tasks": {"0_0": {"running": True, "remaining": 0}, "0_1": {"running": False, "remaining": 42}},
    }

    streams.state = State.ERROR
    assert (client.get("/health/live").status, client.get("/health/ready").status) == (503, 503)

    streams.state, streams.stuck = State.RUNNING, {"shop-StreamThread-1": 301_000}
    for answer in (client.get("/health/live"), client.get("/health/ready")):
        assert (answer.status, answer.json["alive"]) == (503, False)
        assert answer.json["stuck"] == {"shop-StreamThread-1": 301_000}


def test_whoever_has_no_token_reads_no_store(serve: Serve) -> None:
    port = serve(token="secret").port

    assert get(port, "/stores/prices/keys/tea", Authorization="Bearer secret").json["value"] == "v-tea"
    assert get(port, "/health/live").status == 200
    for sent in (
        {},
        {"Authorization": "Bearer secre"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic secret"},
    ):
        answer = get(port, "/stores/prices/keys/tea", **sent)
        assert (answer.status, answer.problem) == (401, "unauthorized")
        assert "Bearer" in answer.headers["www-authenticate"]


def test_every_route_that_tells_anything_needs_the_token(application: Application) -> None:
    served = app(Streams(application), options=HttpOptions(token="secret"), metrics=lambda: (b"", "text/plain"))
    client = Client(served, token="secret")
    refused = set()
    for route in client.app.routes:
        answer = client.get(route.path.format(store="prices", key="tea"))
        if answer.status == 401:
            assert answer.problem == "unauthorized"
            refused.add(route.path)

    told = {route.path for route in client.app.routes} - refused
    assert told == {"/", "/live/page.js", "/live/page.css", "/health/live", "/health/ready"}


@pytest.mark.parametrize(
    "target",
    [
        "/stores/prices/keys/%FF",
        "/stores/prices/keys/a%C3",
        "/stores/prices/keys/%ED%A0%80",
        "/stores/%FF/keys/tea",
        "/%FF",
        "/stores/prices/keys?key=%FF",
        "/stores/prices/range?from=a&to=%C3",
        "/stores/prices/range?%FF=a",
    ],
)
def test_what_is_no_utf_8_is_refused_rather_than_read_as_another_key(
    serve: Serve, application: Application, target: str
) -> None:
    for key in ("\ufffd", "a\ufffd", "\ufffd\ufffd\ufffd"):
        spread(application, [key], 2)

    answer = get(serve().port, target)
    assert (answer.status, answer.problem) == (400, "bad-request")
    assert "UTF-8" in answer.json["detail"]


@pytest.mark.parametrize("target", ["keys/%EF%BF%BD", "keys?key=%EF%BF%BD"])
def test_the_replacement_character_is_a_key_as_any_other(serve: Serve, application: Application, target: str) -> None:
    spread(application, ["\ufffd"], 2)

    assert get(serve().port, f"/stores/prices/{target}").json["value"] == "v-\ufffd"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_reading_is_possible(application: Application, method: str) -> None:
    answer = client_of(application).get("/stores/prices/keys/tea", method=method)

    assert (answer.status, answer.problem, answer.headers["allow"]) == (405, "method", "GET, HEAD")


def test_a_body_is_refused(application: Application) -> None:
    client = client_of(application)

    assert client.get("/stores", {"content-length": "100000"}).problem == "too-large"
    assert client.get("/stores", {"content-length": "9" * 5000}).problem == "too-large"
    assert client.get("/stores", {"transfer-encoding": "chunked"}).problem == "too-large"


def test_more_reads_than_may_wait_are_refused_and_health_still_answers(application: Application) -> None:
    client = client_of(application, readers=1, waiting=1)
    entered, release = threading.Event(), threading.Event()

    def hold() -> None:
        with application.by_partition[0].gate, application.by_partition[1].gate:
            entered.set()
            release.wait(PATIENCE_S)

    worker = threading.Thread(target=hold)  # a worker that is busy with a batch
    worker.start()
    entered.wait(PATIENCE_S)

    async def ask() -> list[Answered]:
        waiting = [asyncio.create_task(client.ask("/stores/prices/keys/tea", {})) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        refused = await client.ask("/stores/prices/keys/tea", {})
        alive = await client.ask("/health/live", {})
        release.set()
        return [refused, alive, *await asyncio.gather(*waiting)]

    try:
        refused, alive, *answered = asyncio.run(ask())
    finally:
        release.set()
        worker.join()
    assert (refused.status, refused.problem, refused.headers["retry-after"]) == (503, "overloaded", "1")
    assert alive.status == 200
    assert [one.status for one in answered] == [200, 200]


def test_keys_of_a_worker_that_hangs_are_refused_once_too_many_wait(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MOST_SOON", 3)
    client, replies = client_of(application), Replies()

    def ask() -> None:
        for asked in lookups(*["/stores/prices/keys/tea"] * 5):
            client.app.answers.look_up("prices", [asked], replies)

    with application.by_partition[0].gate, application.by_partition[1].gate:
        asking = threading.Thread(target=ask)
        asking.start()
        asking.join()

    assert replies.left == [3, 4]  # they go the other way, whose queue has an end


def test_an_answer_that_takes_too_long_is_given_up(application: Application) -> None:
    client = client_of(application, timeout_ms=30)
    with application.by_partition[0].gate, application.by_partition[1].gate:
        answer = client.get("/stores/prices/keys/tea")

    assert (answer.status, answer.problem) == (504, "timeout")


def test_an_error_that_nobody_foresaw_shows_nothing_of_the_inside(
    application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> tuple[bytes, str]:
        raise RuntimeError("password 1234")

    client = Client(app(Streams(application), metrics=fail))
    answer = client.get("/metrics")

    assert (answer.status, answer.problem) == (500, "internal")
    assert "1234" not in answer.body.decode()
    assert "password 1234" in caplog.text


def test_metrics_are_those_of_the_provider(application: Application) -> None:
    client = Client(app(Streams(application), metrics=lambda: (b"up 1\n", "text/plain; version=0.0.4")))
    answer = client.get("/metrics")

    assert (answer.body, answer.headers["content-type"]) == (b"up 1\n", "text/plain; version=0.0.4")


def test_the_description_has_every_route_with_its_parameters(application: Application) -> None:
    served = app(Streams(application), options=HttpOptions(token="x"), metrics=lambda: (b"", ""))
    told: Any = orjson.loads(orjson.dumps(served.openapi()))

    assert told["openapi"] == "3.1.0"
    assert list(told["paths"]) == [route.path for route in served.routes]
    for route in served.routes:
        operation = told["paths"][route.path]["get"]
        assert {(one["name"], one["in"]) for one in operation["parameters"]} == {
            (one.name, one.place) for one in route.parameters
        }
        assert {one.name for one in route.parameters if one.place == "path"} == _names_in(route.path)
        assert ("security" in operation) is not route.open
    assert len({told["paths"][path]["get"]["operationId"] for path in told["paths"]}) == len(served.routes)
    assert _references(told) <= {
        f"#/components/{kind}/{name}" for kind in ("schemas", "responses") for name in told["components"][kind]
    }


def _names_in(path: str) -> set[str]:
    return {part[1:-1] for part in path.split("/") if part.startswith("{")}


def _references(told: Any) -> set[str]:
    if isinstance(told, dict):
        own = {told["$ref"]} if "$ref" in told else set()
        return own.union(*map(_references, told.values()))
    return set().union(*map(_references, told)) if isinstance(told, list) else set()


def test_a_parameter_with_choices_names_them_in_its_description() -> None:
    told = Parameter("order", "which", choices=("asc", "desc")).as_json()

    assert told["schema"] == {"type": "string", "enum": ["asc", "desc"]}


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("8080", LOOPBACK, 8080),
        (":8080", LOOPBACK, 8080),
        ("0.0.0.0:8080", "0.0.0.0", 8080),
        ("shop-1:80", "shop-1", 80),
        ("[::]:80", "::", 80),
    ],
)
def test_an_address_without_a_host_is_the_loopback_interface(text: str, host: str, port: int) -> None:
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize("text", ["", "shop", "shop:", "shop:70000", "::1:80", "a b:80", "http://shop:80"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is no host:port; write 127\.0\.0\.1:8080"):
        Address.parse(text)


def test_each_worker_has_the_next_port() -> None:
    assert [Address("h", 8080).of_worker(number).port for number in (None, 1, 2, 3)] == [8080, 8080, 8081, 8082]
    assert Address("h", 0).of_worker(2).port == 0
    with pytest.raises(ConfigError, match="worker 3 has no port"):
        Address("h", 65534).of_worker(3)


def test_what_is_published_is_what_others_can_reach() -> None:
    assert Address("127.0.0.1", 0).published(5) == "127.0.0.1:5"
    assert Address("::1", 0).published(5) == "[::1]:5"
    assert Address("0.0.0.0", 0).published(5) == f"{socket.gethostname()}:5"


def test_a_server_says_its_port_and_an_application_how_many_routes_there_are(
    serve: Serve, application: Application
) -> None:
    server, served = serve(), app(Streams(application))

    assert repr(server) == f"<HttpServer at port {server.port}>"
    assert repr(served) == f"<HttpApp with {len(served.routes)} routes>"


def test_nothing_listens_beyond_loopback_unless_it_is_told_to(serve: Serve) -> None:
    port = serve().port
    beyond = [one for one in own_addresses() if not ipaddress.ip_address(one).is_loopback]

    assert listening(port) == {LOOPBACK}
    for address in beyond:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address, port), timeout=PATIENCE_S)

    port = serve(at="0.0.0.0:0").port
    assert listening(port) == {"0.0.0.0"}
    for address in beyond:
        socket.create_connection((address, port), timeout=PATIENCE_S).close()


def own_addresses() -> list[str]:
    """The IPv4 addresses of all interfaces of this machine."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without an address
                told = fcntl.ioctl(asked, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                found.append(socket.inet_ntoa(told[20:24]))
    return found


def listening(port: int) -> set[str]:
    """The addresses at which anybody listens at a port, by both versions of IP."""
    found = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            address, number = line.split()[1].split(":")
            if line.split()[3] == LISTENING and int(number, 16) == port:
                words = struct.iter_unpack("=I", bytes.fromhex(address))
                found.add(socket.inet_ntop(family, b"".join(struct.pack("!I", word) for (word,) in words)))
    return found


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="give another --http"):
        bound(Address("127.0.0.1", taken.getsockname()[1])).listen()


def test_tls_files_that_are_none_are_refused(application: Application, tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("nothing")
    served, options = app(Streams(application)), HttpOptions()
    with bound(Address.parse(":0")) as sock, pytest.raises(ConfigError, match="give PEM files that belong together"):
        HttpServer(served, sock, options, certificate=str(tmp_path / "cert.pem"), key=str(tmp_path / "key.pem"))


def test_an_application_may_be_mounted_in_another_one(application: Application) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    outer = Starlette(routes=[Mount("/kafka", app=app(Streams(application)))])
    served: Any = outer
    client = Client(served)
    assert isinstance(app(Streams(application)), HttpApp)
    assert client.get("/kafka/stores/prices/keys/tea").json["value"] == "v-tea"
    assert client.get("/kafka/nothing").problem == "not-found"


def test_an_application_that_is_closed_refuses_questions(
    application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(application)
    client.app.close()

    answer = client.get("/stores/prices/range")
    assert (answer.status, answer.problem) == (503, "unavailable")
    assert not caplog.records


def test_a_read_that_waits_when_the_application_is_closed_is_refused(application: Application) -> None:
    client = client_of(application, readers=1)
    entered, release = threading.Event(), threading.Event()

    def hold() -> None:
        with application.by_partition[0].gate, application.by_partition[1].gate:
            entered.set()
            release.wait(PATIENCE_S)

    worker = threading.Thread(target=hold)
    worker.start()
    entered.wait(PATIENCE_S)

    async def ask() -> list[Answered]:
        asked = [asyncio.create_task(client.ask("/stores/prices/keys/tea", {})) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        client.app.close()
        refused = await asked[1]
        release.set()
        return [await asked[0], refused]

    try:
        answered, refused = asyncio.run(ask())
    finally:
        release.set()
        worker.join()
    assert answered.status == 200
    assert (refused.status, refused.problem) == (503, "unavailable")


@pytest.mark.parametrize(
    "path", ["/metrics", "/live.json", "/live/topology.svg", "/instances", "/stores", "/stores/prices"]
)
def test_what_tells_of_the_application_waits_for_no_store(application: Application, path: str) -> None:
    """It is asked for when a worker hangs, to find out why."""
    served = app(Streams(application), options=HttpOptions(readers=1), metrics=lambda: (b"up 1\n", "text/plain"))
    client = Client(served)

    async def ask() -> tuple[Answered, Answered]:
        with application.by_partition[0].gate:
            hanging = asyncio.create_task(client.ask("/stores/prices/range", {}))
            await asyncio.sleep(0)
            told = await client.ask(path, {})
        return told, await hanging

    told, rows = asyncio.run(ask())
    assert (told.status, rows.status) == (200, 200)
