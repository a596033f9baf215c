"""The server's process and a worker that reads none of its requests for a while."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from pykstreams.http import HttpOptions
from pykstreams.http.exchange import json_answer
from pykstreams.http.process.forwarding import Forwarding
from pykstreams.http.process.messages import (
    LOG,
    LOOKUPS,
    OTHERWISE,
    REQUESTS,
    Messages,
    answers_frame,
    frame,
    lookups_of,
    requests_of,
)
from tests.unit.http.served_application import Answered

LONG = "x" * 16_000
"""The query of a request."""


class Worker:
    """The other end of the socket, which reads when it is told to."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.taken = 0
        """The bytes that it has read."""
        self.kinds: list[str] = []
        """The messages that it has read; of those for single keys it wants requests."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads and answers requests within the block."""
        task = asyncio.ensure_future(self._read())
        try:
            yield
        finally:
            task.cancel()

    def end(self) -> None:
        """Closes its end."""
        self._socket.close()

    async def _read(self) -> None:
        loop, messages = asyncio.get_running_loop(), Messages()
        while data := await loop.sock_recv(self._socket, 1 << 20):
            self.taken += len(data)
            for message in messages.of(data):
                self.kinds.append(message.kind)
                if message.kind == LOOKUPS:
                    asked = [number for _, some in lookups_of(message) for number, _ in some]
                    await loop.sock_sendall(self._socket, frame(OTHERWISE, asked))
                if message.kind == REQUESTS:
                    found = [(number, json_answer({"path": one.path})) for number, one in requests_of(message)]
                    await loop.sock_sendall(self._socket, answers_frame(found))


@asynccontextmanager
async def forwarding(
    health_timeout_ms: int = 20_000, token: str | None = None
) -> AsyncIterator[tuple[Forwarding, Worker]]:
    """What forwards requests, as its server has started it, and the worker at the other end."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours:
        made = Forwarding(theirs, HttpOptions(token, timeout_ms=20_000, health_timeout_ms=health_timeout_ms))
        begun, over = asyncio.Event(), asyncio.Event()
        messages = iter(("lifespan.startup", "lifespan.shutdown"))

        async def receive() -> dict[str, str]:
            kind = next(messages)
            if kind == "lifespan.shutdown":
                await over.wait()
            return {"type": kind}

        async def send(message: Any) -> None:
            begun.set()

        life = asyncio.ensure_future(made({"type": "lifespan"}, receive, send))
        await begun.wait()
        try:
            yield made, Worker(ours)
        finally:
            over.set()
            await life


async def ask(application: Forwarding, path: str, query: str = "") -> Answered:
    sent: list[Any] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
    await application(scope, receive, send)
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answered(sent[0]["status"], told, sent[1]["body"])


async def ask_until_full(application: Forwarding) -> list[asyncio.Task[Answered]]:
    """Asks 400 times, 20 at a time, 6 MB in all; returns what each is answered, or will be."""
    asked: list[asyncio.Task[Answered]] = []
    for _ in range(20):
        together = [asyncio.create_task(ask(application, "/stores", LONG)) for _ in range(20)]
        await asyncio.wait(together, timeout=0.01)
        asked += together
    return asked


def test_requests_to_a_worker_that_reads_none_are_kept_up_to_a_bound_and_then_refused_at_once() -> None:
    async def test() -> None:
        async with forwarding() as (application, worker):
            asked = await ask_until_full(application)
            for _ in range(200):
                application.tell(LOG, [30, "http", LONG])
            refused = [one.result() for one in asked if one.done()]
            probe = asyncio.create_task(ask(application, "/health/live"))
            with worker.reading():
                answered = [await one for one in asked]
                alive = await probe
                again = await ask(application, "/stores")

            assert {one.problem for one in refused} == {"overloaded"}
            assert refused[0].headers["retry-after"] == "1"
            assert "ask again a little later, or another instance" in refused[0].json["detail"]
            assert worker.taken < 2 << 20, "of 6 MB of requests, and 3 MB of lines for the log"
            assert {one.status for one in (*answered[:20], alive, again)} == {200}

    asyncio.run(test())


def test_a_probe_of_a_worker_that_reads_nothing_is_told_so_and_not_that_there_is_too_much_to_do() -> None:
    async def test() -> None:
        async with forwarding(health_timeout_ms=20) as (application, worker):
            asked = await ask_until_full(application)
            answer = await ask(application, "/health/live")
            worker.end()
            await asyncio.wait(asked)

            assert (answer.status, answer.problem) == (503, "unavailable")
            assert "did not answer in 0.02 s" in answer.json["detail"]

    asyncio.run(test())


def test_what_waits_when_the_worker_ends_is_told_that_it_has() -> None:
    async def test() -> None:
        async with forwarding() as (application, worker):
            asked = await ask_until_full(application)
            waiting = [one for one in asked if not one.done()]
            waiting.append(asyncio.create_task(ask(application, "/health/live")))
            await asyncio.sleep(0)
            worker.end()

            for one in waiting:
                assert "the worker behind this server has ended" in (await one).json["detail"]

    asyncio.run(test())


@pytest.mark.parametrize(
    ("path", "token", "kinds"),
    [
        ("/stores/prices/keys/tea", None, [LOOKUPS, REQUESTS]),
        ("/stores/prices/keys/tea", "secret", [REQUESTS]),
        ("/stores/prices/range", None, [REQUESTS]),
    ],
)
def test_a_key_is_looked_up_for_who_may_ask_and_goes_as_any_request_where_no_task_has_it(
    path: str, token: str | None, kinds: list[str]
) -> None:
    """The client of this test sends no token."""

    async def test() -> None:
        async with forwarding(token=token) as (application, worker):
            with worker.reading():
                answer = await ask(application, path)

            assert answer.json == {"path": path}
            assert worker.kinds == kinds

    asyncio.run(test())
