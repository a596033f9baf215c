"""The server's process: every request goes to the worker, and its answer to the client."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import threading
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from starlette.types import Receive, Scope, Send

from pykstreams.http.access import Access
from pykstreams.http.asked_keys import asked_key
from pykstreams.http.exchange import LIVE, READY, HttpAnswer, HttpRequest
from pykstreams.http.guard import Guard
from pykstreams.http.options import HttpOptions
from pykstreams.http.problems import ProblemError
from pykstreams.http.process.messages import (
    CLOSE,
    LOG,
    OTHERWISE,
    Messages,
    Numbered,
    NumberedKey,
    answers_of,
    frame,
    lookups_frame,
    requests_frame,
)

_APART_S: Final = 0.01
"""How far messages with requests are apart at least; what comes in between goes with the next one. A worker that has no
time left pays for each message by cold caches; requests that come together share the rest."""

_MOST_UNREAD: Final = 1 << 20
"""The bytes that may wait for a worker which does not read; those of thousands of requests."""

_GONE: Final = "the worker behind this server has ended; ask another instance, or again when it was started anew"

_SILENT: Final = (
    "the worker behind this server did not answer in {:g} s: its process is stopped, has no time, or is in a function "
    "that lets no other thread run; start it again if it stays so"
)


_FULL: Final = (
    "the worker behind this server does not read its requests, and too many are waiting: its process is stopped, has "
    "no time, or is in a function that lets no other thread run; ask again a little later, or another instance"
)


class _Asked(NamedTuple):
    """A request that waits for its answer."""

    request: HttpRequest
    answer: asyncio.Future[HttpAnswer]


class Forwarding(asyncio.Protocol):
    """An ASGI application that asks the worker at the other end of a socket.

    Requests that come together go together. Those for the row of one key go as what a task of the worker looks up
    between two batches; where it cannot, they go once more, as any other request. While too many bytes wait for the
    worker, it is asked for its health only, once it reads again, and told nothing else. The event loop is that of the
    server.
    """

    def __init__(self, worker: socket.socket, options: HttpOptions) -> None:
        self.ended = threading.Event()
        """Set when the server has to end: the worker said so, or is gone."""
        self._worker = worker
        self._guarded = Guard(self._answer, options, self._connect)
        self._health_s = options.health_timeout_ms / 1000
        self._numbers = itertools.count()
        self._messages = Messages()
        self._access = Access(options.token)
        self._requests: list[Numbered] = []
        self._lookups: dict[str, list[NumberedKey]] = {}
        """What is sent with the next messages."""
        self._send_at = 0.0
        self._asked: dict[int, _Asked] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._transport: asyncio.Transport | None = None
        self._has_room = asyncio.Event()
        """Set unless too much waits for the worker."""
        self._has_room.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guarded(scope, receive, send)

    def close(self) -> None:
        """Nothing is left to be closed when the server has ended."""

    def tell(self, kind: str, content: object = None) -> None:
        """Sends a message to the worker if there is room for it; any thread may call it once the server has started."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell, frame(kind, content))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_MOST_UNREAD)

    def pause_writing(self) -> None:
        self._has_room.clear()

    def resume_writing(self) -> None:
        self._has_room.set()

    def data_received(self, data: bytes) -> None:
        for message in self._messages.of(data):
            if message.kind == CLOSE:
                self.ended.set()
                continue
            if message.kind == OTHERWISE:
                for number in cast("list[int]", message.content):
                    if number in self._asked:
                        self._send_soon()
                        self._requests.append((number, self._asked[number].request))
                continue
            for number, answer in answers_of(message):
                asked = self._asked.pop(number, None)
                if asked is not None and not asked.answer.done():
                    asked.answer.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._has_room.set()
        self.ended.set()
        for asked in self._asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(ProblemError("unavailable", _GONE))

    async def _connect(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._loop.create_connection(lambda: self, sock=self._worker)

    async def _answer(self, request: HttpRequest) -> HttpAnswer:
        if request.place not in (LIVE, READY):
            if not self._has_room.is_set():
                raise ProblemError("overloaded", _FULL)
            return await self._ask(request)
        try:
            async with asyncio.timeout(self._health_s):  # a probe goes long before other questions are given up
                await self._has_room.wait()
                return await self._ask(request)
        except TimeoutError as error:
            raise ProblemError("unavailable", _SILENT.format(self._health_s)) from error

    async def _ask(self, request: HttpRequest) -> HttpAnswer:
        if self._transport is None or self._loop is None:
            raise ProblemError("unavailable", _GONE)
        number = next(self._numbers)
        self._send_soon()
        key = asked_key(request)
        if key is not None and self._access.allows(request.authorization):
            self._lookups.setdefault(key.store, []).append((number, key))
        else:
            self._requests.append((number, request))
        asked = self._asked[number] = _Asked(request, self._loop.create_future())
        try:
            return await asked.answer
        finally:
            self._asked.pop(number, None)

    def _send_soon(self) -> None:
        """Has the next messages sent; before something is added to them."""
        if self._loop is not None and not self._requests and not self._lookups:
            self._loop.call_at(self._send_at, self._send)

    def _send(self) -> None:
        requests, self._requests = self._requests, []
        lookups, self._lookups = self._lookups, {}
        self._send_at = asyncio.get_running_loop().time() + _APART_S
        if lookups:
            self._write(lookups_frame(lookups))
        if requests:
            self._write(requests_frame(requests))

    def _tell(self, message: bytes) -> None:
        if self._has_room.is_set():
            self._write(message)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


class LogOfWorker(logging.Handler):
    """Has the worker log what this process logs, so that there is one log in one format."""

    def __init__(self, tell: Callable[[str, object], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(LOG, [record.levelno, record.name, self.format(record)])
