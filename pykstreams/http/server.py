"""A server in a thread of its own, over a socket that is bound before anything is told of it.

A client must send the head of its request, and take the answer, within a bound; connections beyond the limit are
closed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pykstreams.core.errors import ConfigError, StreamsError
from pykstreams.http.asgi import HttpApp
from pykstreams.http.options import Address, HttpOptions

log = logging.getLogger(__name__)

_PATIENCE_S: Final = 10.0
_CLOSE_S: Final = 0.2
"""For how long a connection without a request may take to close when the server ends."""


class HttpServer:
    """Serves an application until ``close``.

    :param sock: a socket that is bound; see ``bound``. It is closed at the end.
    :param certificate, key: files for TLS; both or none.
    """

    def __init__(
        self,
        app: HttpApp,
        sock: socket.socket,
        options: HttpOptions,
        *,
        certificate: str | None = None,
        key: str | None = None,
    ) -> None:
        self._app = app
        self._socket = sock
        self.port: int = sock.getsockname()[1]
        """The port at which it listens."""
        try:
            config = uvicorn.Config(
                app,
                http=_connections(options),
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                ssl_certfile=certificate,
                ssl_keyfile=key,
                timeout_graceful_shutdown=2,
            )
            config.load()
        except OSError as error:  # ssl.SSLError is one
            raise ConfigError(
                f"TLS cannot be served with certificate {certificate!r} and key {key!r}: {error}; give PEM files that "
                "belong together"
            ) from error
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        """Begins to answer; returns when it does."""
        self._thread.start()
        waited = threading.Event()
        for _ in range(round(_PATIENCE_S / 0.01)):
            if self._server.started or not self._thread.is_alive():
                break
            waited.wait(0.01)
        if not self._server.started:
            raise StreamsError(f"the HTTP server at port {self.port} did not start; the log says why")

    def close(self) -> None:
        """Answers what was asked, and ends."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_S)
        self._app.close()
        self._socket.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except SystemExit as error:  # so uvicorn ends when it cannot start
            log.error("the HTTP server at port %s ended with code %s", self.port, error.code)


def bound(address: Address) -> socket.socket:
    """A socket bound to an address; ``ConfigError`` where that is not possible."""
    try:
        family, kind, number, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, number)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(place)
        except BaseException:
            found.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"HTTP cannot be served at {address.host}:{address.port}: {error}; give another --http HOST:PORT, or end "
            "what listens there"
        ) from error
    return found


def _connections(options: HttpOptions) -> type[asyncio.Protocol]:
    """The class of connections with some limits; uvicorn makes them of a class only."""

    class Connection(_Connection):
        client_timeout_s = options.client_timeout_ms / 1000
        most = options.max_connections

    return Connection


class _Connection(H11Protocol):
    """A connection that is cut when its client is too slow, or when there are too many."""

    client_timeout_s = 0.0
    most = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base has it
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
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

    def shutdown(self) -> None:
        super().shutdown()
        # by TLS a connection ends when its client has said so, too, which one that is kept for later may never do
        self.loop.call_later(_CLOSE_S, self._cut_when_idle)

    def _cut_when_idle(self) -> None:
        if self._at_work:
            self.loop.call_later(_CLOSE_S, self._cut_when_idle)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    @property
    def _at_work(self) -> bool:
        """Whether a request is complete and has no whole answer; the application has a limit of its own then."""
        return self.cycle is not None and not self.cycle.response_complete

    def _arm(self) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(self.client_timeout_s, self.transport.abort)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
