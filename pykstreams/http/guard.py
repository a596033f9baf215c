"""The ASGI application before all routes: methods, sizes and time, and problems in the place of errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from pykstreams.http.exchange import HttpAnswer, HttpRequest
from pykstreams.http.options import HttpOptions
from pykstreams.http.problems import WRITE_UTF_8, ProblemError, problem_of, shown

_REPLACEMENT: Final = "\ufffd"
"""Stands for bytes that are no UTF-8."""

Answering = Callable[[HttpRequest], Awaitable[HttpAnswer]]
"""Answers a request; every error of it becomes a JSON problem."""


class Guard:
    """An ASGI application over what answers requests.

    :param started: awaited when the server starts, in its event loop.
    """

    def __init__(
        self, answering: Answering, options: HttpOptions, started: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._answering = answering
        self._options = options
        self._started = started

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":  # a WebSocket: closed before it is accepted
            await send({"type": "websocket.close", "code": 1002})
            return
        headers = Headers(scope=scope)
        try:
            self._check(scope, headers)
            async with asyncio.timeout(self._options.timeout_ms / 1000):
                answer = await self._answering(_request(scope, headers))
        except Exception as error:
            answer = problem_of(error, scope["path"]).answer(scope["path"])
        await _send(answer, send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        path = shown(scope["path"])
        if scope["method"] not in ("GET", "HEAD"):
            raise ProblemError("method", f"{scope['method']} {path}: stores are changed by records only; use GET")
        length, most = headers.get("content-length", "0"), self._options.max_body_bytes
        if "transfer-encoding" in headers or not length.isdecimal() or int(length[:20]) > most:
            raise ProblemError(
                "too-large", f"the request of {path} has a body of its own; nobody reads it, leave it out"
            )
        _check_path(scope)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                if self._started is not None:
                    await self._started()
                await send({"type": "lifespan.startup.complete"})
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return


def _check_path(scope: Scope) -> None:
    """A ``ProblemError`` for a path that is no UTF-8, of which servers make another one; some do not tell it raw."""
    if _REPLACEMENT not in scope["path"]:
        return
    try:
        unquote_to_bytes(scope.get("raw_path") or b"").decode()
    except UnicodeDecodeError as error:
        raise ProblemError("bad-request", f"the path of the request is no UTF-8 ({error}); {WRITE_UTF_8}") from error


def _request(scope: Scope, headers: Headers) -> HttpRequest:
    path = scope["path"]
    return HttpRequest(
        path,
        path.removeprefix(scope.get("root_path", "")),
        scope["query_string"].decode("latin-1"),
        headers.get("authorization", ""),
    )


async def _send(answer: HttpAnswer, send: Send) -> None:
    headers = [(name.encode("ascii"), text.encode("latin-1")) for name, text in answer.headers.items()]
    headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
