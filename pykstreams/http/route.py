"""A route of the server with its description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from pykstreams.http.exchange import JSON, HttpAnswer
from pykstreams.http.parameters import Given, Parameter

Handler = Callable[[Given], Awaitable[HttpAnswer]]


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A route with its description.

    :param open: whether it needs no token.
    :param content: media types and schemas of a success.
    :param among_instances: further parameters, which other instances send with each question, and nobody else may.
    """

    path: str
    name: str
    summary: str
    handler: Handler
    parameters: tuple[Parameter, ...] = ()
    open: bool = False
    content: Mapping[str, object] = field(default_factory=lambda: {JSON: {"schema": {"type": "object"}}})
    among_instances: tuple[Parameter, ...] = ()
