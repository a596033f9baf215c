"""The OpenAPI 3.1 description of the routes, made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from pykstreams._version import __version__
from pykstreams.http.parameters import Parameter
from pykstreams.http.problems import problem_kinds


class Described(Protocol):
    """The properties of a route that its description needs."""

    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def parameters(self) -> tuple[Parameter, ...]: ...
    @property
    def open(self) -> bool:
        """Whether it needs no token."""
        ...

    @property
    def content(self) -> Mapping[str, object]:
        """Media types and schemas of a success."""
        ...


def described(routes: Iterable[Described], *, token: bool) -> dict[str, object]:
    """Describes routes.

    :param token: whether all but the open ones need a token.
    """
    found: dict[str, object] = {
        "openapi": "3.1.0",
        "info": {"title": "pykstreams", "version": __version__, "summary": "Stores and health of an application"},
        "paths": {route.path: {"get": _operation(route, token)} for route in routes},
        "components": {"schemas": _SCHEMAS, "responses": {"problem": _PROBLEM}},
    }
    if token:
        found["components"] = {
            "schemas": _SCHEMAS,
            "responses": {"problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        }
    return found


def _operation(route: Described, token: bool) -> dict[str, object]:
    operation: dict[str, object] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [one.as_json() for one in route.parameters],
        "responses": {
            "200": {"description": "The answer.", "content": route.content},
            "default": {"$ref": "#/components/responses/problem"},
        },
    }
    if token and not route.open:
        operation["security"] = [{"token": []}]
    return operation


_INTEGER: dict[str, object] = {"type": "integer"}
_STRING: dict[str, object] = {"type": "string"}
_MAYBE: dict[str, object] = {"type": ["integer", "null"]}

_ROW: dict[str, object] = {
    "type": "object",
    "required": ["key", "value"],
    "properties": {
        "key": {},
        "value": {},
        "timestamp": {**_MAYBE, "description": "ms since the epoch"},
        "valid_to": {**_MAYBE, "description": "ms; null for the newest version"},
        "window": {"type": "object", "properties": {"start": _INTEGER, "end": _INTEGER}},
        "headers": {"type": "array", "items": {"type": "array"}},
    },
}

_SCHEMAS: dict[str, object] = {
    "row": _ROW,
    "source": {
        "type": "object",
        "description": "Where rows are from, and how current they are.",
        "properties": {
            "partition": _INTEGER,
            "host": _STRING,
            "role": {"enum": ["active", "restoring", "standby", "global"]},
            "offset_lag": {**_MAYBE, "description": "changelog offsets that a copy lacks"},
            "stale_ms": {**_MAYBE, "description": "since when at most it lacks them; null: not known"},
            "position": {"type": "object", "description": "offsets by topic and partition"},
        },
    },
    "value": {
        "allOf": [
            {"$ref": "#/components/schemas/row"},
            {"type": "object", "properties": {"from": {"$ref": "#/components/schemas/source"}}},
        ]
    },
    "rows": {
        "type": "object",
        "required": ["rows", "next", "from"],
        "properties": {
            "rows": {"type": "array", "items": {"$ref": "#/components/schemas/row"}},
            "next": {"type": ["string", "null"], "description": "the cursor where rows go on; null at the end"},
            "from": {"type": "array", "items": {"$ref": "#/components/schemas/source"}},
        },
    },
    "problem": {
        "type": "object",
        "required": ["type", "title", "status", "detail", "instance"],
        "properties": {
            "type": {"enum": [f"urn:pykstreams:problem:{kind}" for kind, _, _ in problem_kinds()]},
            "title": _STRING,
            "status": _INTEGER,
            "detail": _STRING,
            "instance": _STRING,
        },
    },
}

_PROBLEM: dict[str, object] = {
    "description": "What went wrong (RFC 9457).",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/problem"}}},
}
