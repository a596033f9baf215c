"""The guard before all routes: methods, sizes and time, and problems in the place of errors."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pykstreams.http.options import HttpOptions
from pykstreams.http.problems import ProblemError, problem_of


class Guard:
    """An ASGI application before another one; every error of that one becomes a JSON problem."""

    def __init__(self, inner: ASGIApp, options: HttpOptions) -> None:
        self._inner = inner
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":  # a WebSocket: closed before it is accepted
            await send({"type": "websocket.close", "code": 1002})
            return
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            self._check(scope)
            async with asyncio.timeout(self._options.timeout_ms / 1000):
                await self._inner(scope, receive, sent)
        except Exception as error:
            problem = problem_of(error, scope["path"])
            if begun:  # half an answer is out; the server closes the connection
                raise
            await problem_response(problem, scope)(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise ProblemError(
                "method", f"{scope['method']} {scope['path']}: stores are changed by records only; use GET"
            )
        headers, most = Headers(scope=scope), self._options.max_body_bytes
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal() or int(length[:20]) > most:
            raise ProblemError(
                "too-large", f"the request of {scope['path']} has a body of its own; nobody reads it, leave it out"
            )


def problem_response(problem: ProblemError, scope: Scope) -> Response:
    """The answer for a problem."""
    headers = problem.headers
    if problem.kind == "too-large":
        headers["connection"] = "close"
    return Response(problem.body(scope["path"]), problem.status, headers)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
