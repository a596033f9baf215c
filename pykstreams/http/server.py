"""A server in a thread of its own, over a socket that is bound before anything is told of it."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from functools import partial
from typing import Final, Protocol

import uvicorn
from starlette.types import Receive, Scope, Send

from pykstreams.core.errors import ConfigError, StreamsError
from pykstreams.http.connections import SPARE_CONNECTIONS, ConnectionLoop, Listener, connections_of
from pykstreams.http.options import Address, HttpOptions

log = logging.getLogger(__name__)

_PATIENCE_S: Final = 10.0


class ServedApp(Protocol):
    """An ASGI application that is closed with its server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...
    def close(self) -> None: ...


class HttpServer:
    """Serves an application until ``close``.

    :param sock: a socket that is bound; see ``bound``. From now on it is the server's.
    :param certificate, key: files for TLS; both or none.
    """

    def __init__(
        self,
        app: ServedApp,
        sock: socket.socket,
        options: HttpOptions,
        *,
        certificate: str | None = None,
        key: str | None = None,
    ) -> None:
        self._app = app
        self._options = options
        self.port: int = sock.getsockname()[1]
        """The port at which it listens."""
        check_tls(certificate, key)
        config = uvicorn.Config(
            app,
            http=connections_of(options),
            ws="none",
            loop="asyncio",
            lifespan="on",
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
        self._socket = Listener(sock, options.max_connections + SPARE_CONNECTIONS)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def __repr__(self) -> str:
        return f"<HttpServer at port {self.port}>"

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
            with asyncio.Runner(loop_factory=partial(ConnectionLoop, self._options.client_timeout_ms / 1000)) as runner:
                runner.run(self._server.serve(sockets=[self._socket]))
        except SystemExit as error:  # so uvicorn ends when it cannot start
            log.error("the HTTP server at port %s ended with code %s", self.port, error.code)


def check_tls(certificate: str | None, key: str | None) -> None:
    """``ConfigError`` for files by which TLS cannot be served; none are fine."""
    if certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"TLS cannot be served with certificate {certificate!r} and key {key!r}: {error}; give PEM files that "
            "belong together"
        ) from error


def check_ca(file: str | None) -> None:
    """``ConfigError`` for a file by which no certificate can be checked; none is fine."""
    if file is None:
        return
    try:
        ssl.create_default_context(cafile=file)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"certificates of other instances cannot be checked by {file!r}: {error}; give a PEM file of certificates"
        ) from error


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
