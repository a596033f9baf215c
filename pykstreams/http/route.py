"""A route of the server with its description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import orjson
from starlette.requests import Request
from starlette.responses import Response

from pykstreams.http.parameters import Given, Parameter

Handler = Callable[[Request, Given], Awaitable[Response]]

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A route with its description.

    :param open: whether it needs no token.
    :param content: media types and schemas of a success.
    """

    path: str
    name: str
    summary: str
    handler: Handler
    parameters: tuple[Parameter, ...] = ()
    open: bool = False
    content: Mapping[str, object] = field(default_factory=lambda: {JSON: {"schema": {"type": "object"}}})


def json_response(body: bytes | Mapping[str, object], status: int = 200) -> Response:
    """Answers with JSON that nobody keeps."""
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return Response(raw, status, headers={"content-type": JSON, "cache-control": "no-store"})
