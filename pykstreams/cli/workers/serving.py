"""``--http`` of ``pykstreams run``: the socket is bound and its address told before the worker starts."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from pykstreams.cli.workers.token_file import token_in
from pykstreams.core.errors import ConfigError

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.http import Address
    from pykstreams.runtime.streams import KafkaStreams

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Serving:
    """The options of ``pykstreams run`` that begin with ``--http``.

    :param address: where to listen; ``None`` for no server at all.
    """

    address: str | None = None
    token_file: str | None = None
    certificate: str | None = None
    key: str | None = None
    ca_file: str | None = None
    stale: str = "refuse"

    def check(self) -> None:
        """Raises where the options contradict each other, before anything is started."""
        others = (self.token_file, self.certificate, self.key, self.ca_file)
        if self.address is None:
            if any(one is not None for one in others) or self.stale != "refuse":
                raise click.UsageError(
                    "options that begin with --http- need to know where to listen; give --http HOST:PORT"
                )
            return
        if (self.certificate is None) != (self.key is None):
            raise click.UsageError("--http-tls-cert and --http-tls-key belong together; give both")
        if self.ca_file is not None and self.certificate is None:
            raise click.UsageError(
                "--http-tls-ca checks instances that serve TLS, as all or none do; give --http-tls-cert and "
                "--http-tls-key, too"
            )
        try:
            from pykstreams.http.options import Address, stale_ms
            from pykstreams.http.server import check_ca, check_tls
        except ImportError as error:  # it says what to install
            raise ConfigError(f"--http cannot be served: {error}") from error
        Address.parse(self.address)
        stale_ms(self.stale)
        self.token()
        check_tls(self.certificate, self.key)
        check_ca(self.ca_file)

    def arguments(self) -> list[str]:
        """The same as options of a worker process."""
        options = {
            "--http": self.address,
            "--http-token-file": self.token_file,
            "--http-tls-cert": self.certificate,
            "--http-tls-key": self.key,
            "--http-tls-ca": self.ca_file,
            "--http-stale": None if self.address is None else self.stale,
        }
        return [text for name, value in options.items() if value is not None for text in (name, value)]

    def token(self) -> str | None:
        """The token that the file holds; ``ConfigError`` for a file without one."""
        return None if self.token_file is None else token_in(self.token_file)

    @contextmanager
    def bound(self, worker: int | None) -> Iterator[Listening | None]:
        """Binds the socket of a worker process; ``None`` where no server is wanted."""
        if self.address is None:
            yield None
            return
        from pykstreams.http import Address
        from pykstreams.http.server import bound

        address = Address.parse(self.address).of_worker(worker)
        with bound(address) as sock:
            yield Listening(self, sock, address, worker)


@dataclass(frozen=True, slots=True)
class Listening:
    """A server that has its port, and does not answer yet."""

    serving: Serving
    sock: socket.socket
    address: Address
    worker: int | None

    def told(self, config: StreamsConfig) -> StreamsConfig:
        """The configuration with the address by which the others of the group reach this process.

        An ``application.server`` that the user gave is kept; each further worker process has the next port there, too.
        """
        given = config.application_server
        if given:
            host, _, port = given.rpartition(":")
            if self.worker is None or not port.isdecimal():
                return config
            return config.replace({"application.server": f"{host}:{int(port) + self.worker - 1}"})
        return config.replace({"application.server": self.address.published(self.sock.getsockname()[1])})

    @contextmanager
    def serve(self, streams: KafkaStreams, config: StreamsConfig) -> Iterator[None]:
        """Answers while the application starts, runs and ends."""
        from pykstreams.http import HttpOptions, HttpServerProcess, app
        from pykstreams.metrics import prometheus_text

        serving = self.serving
        options = replace(
            HttpOptions(token=serving.token(), stale=serving.stale),
            peer_tls=serving.certificate is not None,
            peer_ca_file=serving.ca_file,
        )
        served = app(streams, options=options, metrics=lambda: prometheus_text(streams))
        server = HttpServerProcess(served, self.sock, options, certificate=serving.certificate, key=serving.key)
        server.start()
        log.info("HTTP at port %s; others are told %s", server.port, config.application_server)
        try:
            yield
        finally:
            server.close()
