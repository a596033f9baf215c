"""A route of the server with its description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pykstreams.http.exchange import JSON, HttpAnswer
from pykstreams.http.parameters import Given, Parameter
from pykstreams.http.questions import ShortQuestion

Handler = Callable[[Given], Awaitable[HttpAnswer]]


class Reply(Protocol):
    """Where the answer to a request goes."""

    def __call__(self, answer: HttpAnswer) -> None:
        """Takes the answer; in any thread."""
        ...

    def otherwise(self) -> None:
        """Has the request answered in the way that waits; called in the place of the other one, in any thread."""
        ...


ShortQuestionOf = Callable[[Given], ShortQuestion | None]
"""Returns the question for one row that a request is; ``None`` where it needs more than a task of this process."""


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A route with its description.

    :param open: whether it needs no token.
    :param content: media types and schemas of a success.
    :param short: returns the question for one row of a task of this process; ``None`` where requests are none such.
    :param among_instances: further parameters, which other instances send with each question, and nobody else may.
    """

    path: str
    name: str
    summary: str
    handler: Handler
    parameters: tuple[Parameter, ...] = ()
    open: bool = False
    content: Mapping[str, object] = field(default_factory=lambda: {JSON: {"schema": {"type": "object"}}})
    short: ShortQuestionOf | None = None
    among_instances: tuple[Parameter, ...] = ()
