"""The worker's end of the socket to the server's process: requests come in, and answers go out, many at a time."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import threading
from collections.abc import Iterable
from typing import Final, cast

from pykstreams.http.answers import Answers
from pykstreams.http.exchange import HttpAnswer, HttpRequest
from pykstreams.http.process.messages import (
    LOG,
    LOOKUPS,
    OTHERWISE,
    REQUESTS,
    Messages,
    Numbered,
    NumberedKey,
    answers_frame,
    frame,
    lookups_of,
    requests_of,
)

_CHUNK: Final = 1 << 16

_APART_S: Final = 0.02
"""How far the reads of a worker are apart: keys that come together are looked up together."""
_QUICK_S: Final = 0.02
"""A worker that looks twice in so short a time will look again soon."""
_PATIENCE_S: Final = 0.25
"""How long the event loop leaves what comes to a quick worker that does not look: most commits are shorter."""


class Channel:
    """Answers the requests that come from the server's process.

    Keys are looked up by the worker's thread, between two batches, which also sends the answers: so it need not wait
    for another thread to have its turn at the interpreter. While it processes records it takes in what has come, too,
    and the event loop leaves the socket alone; when there is nothing to process, or a batch or a commit takes long, the
    event loop reads. Everything but keys is answered by the event loop. What does not fit into the socket is left to
    the event loop, so that it waits for nobody. Answers that come after ``close`` are dropped.

    :param sock: one end of a pair, which does not block.
    """

    def __init__(self, answers: Answers, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self.ended = loop.create_future()
        """Done when the server's process has ended."""
        self._answers = answers
        self._loop = loop
        self._socket = sock
        self._messages = Messages()
        self._reading = threading.Lock()
        self._looked_at = -math.inf
        """When a worker looked last, by the clock of the event loop; long ago when it rests."""
        self._read_at = -math.inf
        """When a worker read last."""
        self._is_quick = False
        """Whether it had looked shortly before."""
        self._again: asyncio.TimerHandle | None = None
        """When the event loop looks whether it has to read; ``None`` while it waits for something to read."""
        self._lock = threading.Lock()
        self._closed = False
        self._answered: list[tuple[int, HttpAnswer]] = []
        self._left_over: list[int] = []
        """The requests that have to come again."""
        self._left = b""
        """The bytes that did not fit into the socket."""
        self._at_work: set[asyncio.Task[None]] = set()
        self._watch()
        answers.between_batches.add(self)

    def tell(self, kind: str, content: object = None) -> None:
        """Sends a message to the server's process."""
        with self._lock:
            self._write(frame(kind, content))

    def close(self) -> None:
        """Reads and sends nothing more; the event loop may be closed then."""
        self._answers.between_batches.remove(self)
        with self._reading, self._lock:
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

    def otherwise(self, number: int) -> None:
        """Asks for a request again, which no task here can answer between two batches; in any thread."""
        with self._lock:
            self._left_over.append(number)

    def send(self) -> None:
        """Sends the answers that are there; in any thread."""
        with self._lock:
            answered, self._answered = self._answered, []
            left_over, self._left_over = self._left_over, []
            if answered:
                self._write(answers_frame(answered))
            if left_over:
                self._write(frame(OTHERWISE, left_over))

    def look(self) -> None:
        """Takes in what has come, and waits for nothing: for the thread of a worker, between two batches of records."""
        now = self._loop.time()
        self._looked_at, self._is_quick = now, now - self._looked_at < _QUICK_S
        if now < self._read_at + _APART_S or not self._reading.acquire(blocking=False):
            return  # too soon, or another thread reads
        self._read_at = now
        try:
            if not self._closed:
                self._read()
        finally:
            self._reading.release()

    def rest(self) -> None:
        """Has the event loop read at once: a worker has nothing to process."""
        self._looked_at = -math.inf
        if self._again is not None:
            with self._lock:
                if not self._closed:
                    self._loop.call_soon_threadsafe(self._watch)

    def _watch(self) -> None:
        """Waits for something to read, or leaves it to a worker for now."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._closed:
            return
        patience_s = self._patience_s()
        if patience_s > 0:
            self._loop.remove_reader(self._socket)
            self._again = self._loop.call_later(patience_s, self._watch)
        else:
            self._loop.add_reader(self._socket, self._read_when_ready)

    def _patience_s(self) -> float:
        """How long the event loop leaves what comes to a worker, in seconds; 0 or less where it has to read."""
        return self._looked_at + _PATIENCE_S - self._loop.time() if self._is_quick else 0.0

    def _read_when_ready(self) -> None:
        if self._patience_s() > 0:
            self._watch()
            return
        with self._reading:
            self._read()

    def _read(self) -> None:
        """Reads once, and begins what is asked; in any thread that may read."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.call_soon_threadsafe(self._end)
            return
        lookups: dict[str, list[NumberedKey]] = {}
        for message in self._messages.of(data):
            if message.kind == LOOKUPS:
                for store, asked in lookups_of(message):
                    lookups.setdefault(store, []).extend(asked)
            elif message.kind == REQUESTS:
                self._loop.call_soon_threadsafe(self._start, list(requests_of(message)))
            elif message.kind == LOG:
                level, name, text = cast("tuple[int, str, str]", message.content)
                logging.getLogger(name).log(level, "%s", text)
        for store, some in lookups.items():
            self._answers.look_up(store, some, self)
        self.send()

    def _start(self, requests: Iterable[Numbered]) -> None:
        for number, request in requests:
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
