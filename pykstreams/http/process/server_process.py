"""Starts the server's process, starts it again when it ends by itself, and ends it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import socket
import sys
import threading
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Coroutine
from pathlib import Path
from typing import Final

import pykstreams
from pykstreams.http.asgi import HttpApp
from pykstreams.http.options import HttpOptions
from pykstreams.http.process.channel import Channel
from pykstreams.http.process.messages import CLOSE, SERVE, HowToServe
from pykstreams.http.server import check_tls

log = logging.getLogger(__name__)

_END_S: Final = 10.0
"""For how long it may end: what was asked is answered within two seconds, or not at all."""

_AGAIN_S: Final = 1.0
"""How long it is waited until one that ended by itself is started again."""


class HttpServerProcess:
    """Serves an application by a process of its own, until ``close``, as ``pykstreams run --http`` does.

    Connections, HTTP and TLS cost this process nothing then, and keys are looked up between two batches of records. It
    keeps the socket, so that its address stays the same, and nobody else's, when the other one is started again.

    :param app: what ``pykstreams.http.app`` makes; from now on it is the server's.
    :param sock: a socket that is bound; see ``pykstreams.http.server.bound``. From now on it is the server's.
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
        self.port: int = sock.getsockname()[1]
        """The port at which it listens."""
        self._app = app
        self._socket = sock
        self._files = certificate, key
        self._how = HowToServe(options=dataclasses.asdict(options), certificate=certificate, key=key)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<HttpServerProcess at port {self.port}>"

    def start(self) -> None:
        """Begins to answer: requests that come before the process has started wait for it.

        ``ConfigError`` when TLS cannot be served with the files.
        """
        check_tls(*self._files)
        self._socket.listen()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(self._loop,), name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answers what was asked, and ends."""
        if self._loop is not None and self._thread is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(2 * _END_S)
        self._app.close()
        self._socket.close()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(self._serve())
        except Exception:
            log.exception("HTTP is not served at port %s any more; restart this worker", self.port)

    async def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                code = await self._serve_once()
            except OSError as error:
                log.error("the process of the HTTP server cannot be started: %s; it is tried again", error)
            else:
                if self._closing.is_set():
                    return
                log.warning(
                    "the process of the HTTP server at port %s ended by itself with code %s; it is started again",
                    self.port,
                    code,
                )
            await _within(self._closing.wait(), _AGAIN_S)

    async def _serve_once(self) -> int:
        """Starts the process, and answers until it ends or has to; returns its exit code."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await _start(self._socket, theirs)
            ours.setblocking(False)
            channel = Channel(self._app.answers, asyncio.get_running_loop(), ours)
        except BaseException:
            ours.close()
            raise
        try:
            channel.tell(SERVE, self._how)
            closing = asyncio.ensure_future(self._closing.wait())
            await asyncio.wait((channel.ended, closing), return_when=asyncio.FIRST_COMPLETED)
            closing.cancel()
            channel.tell(CLOSE)
            await _within(process.wait(), _END_S)
        finally:
            channel.close()
            if process.returncode is None:
                process.kill()
        return await process.wait()


async def _start(listening: socket.socket, worker: socket.socket) -> Process:
    """Starts the process; only this package's folder is added to where it looks for modules."""
    descriptors = listening.fileno(), worker.fileno()
    folders = [str(Path(pykstreams.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # not the folder in which the worker was started: a module of the user may have any name
        "-m",
        "pykstreams.http.process",
        *map(str, descriptors),
        pass_fds=descriptors,
        stdin=DEVNULL,
        process_group=0,  # so Ctrl-C, which is for the worker, does not come while it still imports
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
    )


async def _within(work: Coroutine[object, object, object], seconds: float) -> None:
    """Waits for work, so long at most."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)
