"""A route of the server with its description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pykstreams.http.exchange import JSON, HttpAnswer
from pykstreams.http.parameters import Given, Parameter

Handler = Callable[[Given], Awaitable[HttpAnswer]]


class Reply(Protocol):
    """Where the answer to a request goes."""

    def __call__(self, answer: HttpAnswer) -> None:
        """Takes the answer; called once, in any thread."""
        ...

    @property
    def send(self) -> Callable[[], None]:
        """Sends all answers that were taken so far; called after one of them or several, in any thread."""
        ...


Soon = Callable[[Given, Reply, Callable[[], None]], None]
"""Answers without waiting where that is possible; calls the last one where only the handler can."""


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A route with its description.

    :param open: whether it needs no token.
    :param content: media types and schemas of a success.
    :param soon: answers what a task of this process has; ``None`` where there is no such way.
    :param among_instances: further parameters, which other instances send with each question, and nobody else may.
    """

    path: str
    name: str
    summary: str
    handler: Handler
    parameters: tuple[Parameter, ...] = ()
    open: bool = False
    content: Mapping[str, object] = field(default_factory=lambda: {JSON: {"schema": {"type": "object"}}})
    soon: Soon | None = None
    among_instances: tuple[Parameter, ...] = ()
