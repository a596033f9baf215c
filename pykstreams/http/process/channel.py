"""The worker's end of the socket to the server's process: requests come in, and answers go out, many at a time."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import Final, cast

from pykstreams.http.answers import Answers
from pykstreams.http.exchange import HttpAnswer, HttpRequest
from pykstreams.http.process.messages import LOG, REQUESTS, Messages, answers_frame, frame, requests_of

_CHUNK: Final = 1 << 16


class Channel:
    """Answers the requests that come from the server's process.

    Most of them are answered by the worker's thread, between two batches, which also sends the answers: so it need not
    wait for another thread to have its turn at the interpreter. What does not fit into the socket is left to the event
    loop, so that it waits for nobody. Answers that come after ``close`` are dropped.

    :param sock: one end of a pair, which does not block.
    """

    def __init__(self, answers: Answers, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self.ended = loop.create_future()
        """Done when the server's process has ended."""
        self._answers = answers
        self._loop = loop
        self._socket = sock
        self._messages = Messages()
        self._lock = threading.Lock()
        self._closed = False
        self._answered: list[tuple[int, HttpAnswer]] = []
        self._left = b""
        """The bytes that did not fit into the socket."""
        self._at_work: set[asyncio.Task[None]] = set()
        loop.add_reader(sock, self._read)

    def tell(self, kind: str, content: object = None) -> None:
        """Sends a message to the server's process."""
        with self._lock:
            self._write(frame(kind, content))

    def close(self) -> None:
        """Sends nothing more; the event loop may be closed then."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()

    def take(self, number: int, answer: HttpAnswer) -> None:
        """Takes the answer to a request, to be sent with the next ones; in any thread."""
        with self._lock:
            self._answered.append((number, answer))

    def send(self) -> None:
        """Sends the answers that are there; in any thread."""
        with self._lock:
            answered, self._answered = self._answered, []
            if answered:
                self._write(answers_frame(answered))

    def _read(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end()
            return
        for message in self._messages.of(data):
            if message.kind == REQUESTS:
                asked = [(request, _Reply(self, number, request)) for number, request in requests_of(message)]
                self._answers.begin(asked, self.send)
            elif message.kind == LOG:
                level, name, text = cast("tuple[int, str, str]", message.content)
                logging.getLogger(name).log(level, "%s", text)
        self.send()

    def answer_later(self, number: int, request: HttpRequest) -> None:
        """Has a request answered by the event loop; in any thread."""
        with self._lock:
            if not self._closed:
                self._loop.call_soon_threadsafe(self._start, number, request)

    def _start(self, number: int, request: HttpRequest) -> None:
        task = self._loop.create_task(self._answer(number, request))
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def _answer(self, number: int, request: HttpRequest) -> None:
        self.take(number, await self._answers.answer(request))
        self.send()

    def _write(self, data: bytes) -> None:
        """Writes what the socket takes; the event loop writes the rest. The lock is held."""
        if self._closed:
            return
        if self._left:
            self._left += data
            return
        self._left = self._written(data)
        if self._left:
            self._loop.call_soon_threadsafe(self._write_rest_when_ready)

    def _write_rest_when_ready(self) -> None:
        with self._lock:
            if not self._closed:
                self._loop.add_writer(self._socket, self._write_rest)

    def _write_rest(self) -> None:
        with self._lock:
            self._left = self._written(self._left)
            if not self._left:
                self._loop.remove_writer(self._socket)

    def _written(self, data: bytes) -> bytes:
        """Writes to the socket; returns what did not fit. Nothing is left when nobody reads any more."""
        try:
            return data[self._socket.send(data) :]
        except BlockingIOError:
            return data
        except OSError:  # the other process has ended, which the reader sees
            return b""

    def _end(self) -> None:
        self.close()
        if not self.ended.done():
            self.ended.set_result(None)


class _Reply:
    """Takes the answer to one request."""

    __slots__ = ("_channel", "_number", "_request")

    def __init__(self, channel: Channel, number: int, request: HttpRequest) -> None:
        self._channel = channel
        self._number = number
        self._request = request

    def __call__(self, answer: HttpAnswer) -> None:
        self._channel.take(self._number, answer)

    def otherwise(self) -> None:
        self._channel.answer_later(self._number, self._request)
