"""The worker's end of the socket to the server's process: requests come in, and answers go out, many at a time."""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import partial
from typing import cast

from pykstreams.http.answers import Answers
from pykstreams.http.exchange import HttpAnswer, HttpRequest
from pykstreams.http.process.messages import (
    LOG,
    REQUESTS,
    Messages,
    answers_frame,
    frame,
    requests_of,
)


class Channel(asyncio.Protocol):
    """Answers the requests that come from the server's process.

    Most of them are answered by the worker's thread, between two batches; their answers are sent together. Answers that
    come after ``close`` are dropped: nobody waits for them.
    """

    def __init__(self, answers: Answers, loop: asyncio.AbstractEventLoop) -> None:
        self.ended = loop.create_future()
        """Done when the server's process has ended."""
        self._answers = answers
        self._loop = loop
        self._messages = Messages()
        self._lock = threading.Lock()
        self._closed = False
        self._unsent: list[tuple[int, HttpAnswer]] = []
        self._at_work: set[asyncio.Task[None]] = set()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for message in self._messages.of(data):
            if message.kind == REQUESTS:
                for number, request in requests_of(message):
                    self._answers.begin(request, partial(self._reply, number), partial(self._later, number, request))
            elif message.kind == LOG:
                level, name, text = message.content
                logging.getLogger(name).log(level, "%s", text)

    def connection_lost(self, exc: Exception | None) -> None:
        self.close()
        self._transport = None
        if not self.ended.done():
            self.ended.set_result(None)

    def tell(self, kind: str, content: object = None) -> None:
        """Sends a message to the server's process."""
        self._write(frame(kind, content))

    def close(self) -> None:
        """Sends nothing more; the event loop may be closed then."""
        with self._lock:
            self._closed = True
        if self._transport is not None:
            self._transport.close()

    def _later(self, number: int, request: HttpRequest) -> None:
        """Has a request answered by the event loop; in any thread."""
        with self._lock:
            if not self._closed:
                self._loop.call_soon_threadsafe(self._start, number, request)

    def _start(self, number: int, request: HttpRequest) -> None:
        task = self._loop.create_task(self._answer(number, request))
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def _answer(self, number: int, request: HttpRequest) -> None:
        self._reply(number, await self._answers.answer(request))

    def _reply(self, number: int, answer: HttpAnswer) -> None:
        """Sends an answer, with those that are there by then; in any thread."""
        with self._lock:
            if self._closed:
                return
            if not self._unsent:
                self._loop.call_soon_threadsafe(self._send)
            self._unsent.append((number, answer))

    def _send(self) -> None:
        with self._lock:
            unsent, self._unsent = self._unsent, []
        self._write(answers_frame(unsent))

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
