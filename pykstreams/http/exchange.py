"""A request and its answer, as routes see them: without a connection, and without ASGI.

Both are values, never changed; not frozen, since a worker makes some for each question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson

JSON: Final = "application/json"

LIVE: Final = "/health/live"
READY: Final = "/health/ready"


@dataclass(slots=True)
class HttpRequest:
    """A request; stores are only read, so it has no body.

    :param path: unquoted, from the root of the server.
    :param place: the same from where the application is mounted.
    :param query: what follows the question mark, quoted.
    :param authorization: the header of that name; empty without one.
    """

    path: str
    place: str
    query: str
    authorization: str


@dataclass(slots=True)
class HttpAnswer:
    """An answer, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


_JSON_HEADERS: Final = {"content-type": JSON, "cache-control": "no-store"}


def json_answer(body: bytes | Mapping[str, object], status: int = 200) -> HttpAnswer:
    """Answers with JSON that nobody keeps."""
    return HttpAnswer(status, _JSON_HEADERS, body if isinstance(body, bytes) else orjson.dumps(body))
