"""The connections of a server: how many there are, and for how long a client may keep one waiting.

Invariant: at most ``max_connections`` and ``SPARE_CONNECTIONS`` more are open at any time, counted from when they are
accepted, so that a flood of them takes no files that stores and Kafka clients need, nor holds them by a TLS handshake.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pykstreams.http.options import HttpOptions
from pykstreams.http.problems import ProblemError

SPARE_CONNECTIONS: Final = 32
"""Connections beyond the limit that are open at the same time while they are told so; more are closed at once."""

_CLOSE_S: Final = 0.2
"""For how long a connection without a request may take to close when the server ends."""


class Listener(socket.socket):
    """A listening socket that closes what it accepts beyond a number of open connections.

    :param sock: a socket that is bound, which this one takes the place of.
    """

    def __init__(self, sock: socket.socket, most: int) -> None:
        super().__init__(sock.family, sock.type, sock.proto, sock.detach())
        self._most = most
        self._accepted: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, object]:
        """Accepts a connection; ``ConnectionAbortedError`` when it is one too many, which asyncio passes over."""
        accepted, address = super().accept()
        if len(self._accepted) >= self._most:
            self._accepted = [one for one in self._accepted if one.fileno() >= 0]
            if len(self._accepted) >= self._most:
                accepted.close()
                raise ConnectionAbortedError(f"{self._most} connections are open")
        self._accepted.append(accepted)
        return accepted, address


class ConnectionLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers give the TLS handshake of a client so many seconds; uvicorn has no such setting."""

    def __init__(self, handshake_s: float) -> None:
        super().__init__()
        self._handshake_s = handshake_s

    async def create_server(self, *arguments: Any, ssl: Any = None, **named: Any) -> asyncio.Server:
        if ssl is not None:
            named["ssl_handshake_timeout"] = self._handshake_s
        return await super().create_server(*arguments, ssl=ssl, **named)


def connections_of(options: HttpOptions) -> type[asyncio.Protocol]:
    """The class of connections with some limits; uvicorn makes them of a class only."""

    class Limited(Connection):
        client_timeout_s = options.client_timeout_ms / 1000
        most = options.max_connections

    return Limited


class Connection(H11Protocol):
    """A connection whose client is told, as a problem, when there are too many, or when it is too slow to send.

    One that does not take its answers in time is cut.
    """

    client_timeout_s = 0.0
    most = 0
    _deadline: asyncio.TimerHandle | None = None
    _until_taken: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base has it
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._end_with(
                ProblemError(
                    "overloaded", f"{self.most} connections are open at this instance; ask again a little later"
                )
            )
            return
        self._arm()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and not self._at_work:
            self._arm()
        super().data_received(data)
        if self._at_work:
            self._disarm()

    def on_response_complete(self) -> None:
        self._arm()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state is h11.SEND_BODY:  # half an answer is out
            self.transport.abort()
            return
        self._end_with(
            ProblemError(
                "bad-request", "what came is no request of HTTP/1.1, or the head of one that is too long; write another"
            )
        )

    def pause_writing(self) -> None:
        super().pause_writing()
        self._until_taken = self.loop.call_later(self.client_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._disarm_taking()
        super().resume_writing()

    def shutdown(self) -> None:
        super().shutdown()
        # by TLS a connection ends when its client has said so, too, which one that is kept for later may never do
        self.loop.call_later(_CLOSE_S, self._cut_when_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._disarm_taking()
        super().connection_lost(exc)

    @property
    def _at_work(self) -> bool:
        """Whether a request is complete and has no whole answer; the application has a limit of its own then."""
        return self.cycle is not None and not self.cycle.response_complete

    def _cut_when_idle(self) -> None:
        if self._at_work:
            self.loop.call_later(_CLOSE_S, self._cut_when_idle)
        else:
            self.transport.abort()

    def _end_too_slow(self) -> None:
        begun = bool(self.conn.trailing_data[0]) and self.conn.their_state is h11.IDLE
        if begun and not self.transport.get_write_buffer_size():
            self._end_with(
                ProblemError(
                    "too-slow", f"no whole request came in {self.client_timeout_s:g} s; send it without long pauses"
                )
            )
        else:
            self.transport.abort()

    def _end_with(self, problem: ProblemError) -> None:
        """Answers before there is a request, past the application, and ends."""
        body = problem.body("*")
        headers = problem.headers | {"content-length": str(len(body)), "connection": "close"}
        head = [f"HTTP/1.1 {problem.status} {problem.title}", *(f"{name}: {text}" for name, text in headers.items())]
        self.transport.write("\r\n".join([*head, "", ""]).encode("ascii") + body)
        self.transport.close()
        self.loop.call_later(_CLOSE_S, self.transport.abort)  # as in shutdown

    def _arm(self) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(self.client_timeout_s, self._end_too_slow)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _disarm_taking(self) -> None:
        if self._until_taken is not None:
            self._until_taken.cancel()
            self._until_taken = None
