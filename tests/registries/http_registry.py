"""A schema registry over HTTP, in memory: the calls that serializers and checks make, with the codes of errors of
Confluent's (``GET /subjects``, ``POST /compatibility/subjects/...``, ``GET /config``).

What is compatible is not computed: a test says which subjects refuse a schema, and with what words.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Schema = dict[str, Any]
Answer = tuple[int, Any]


@dataclass
class HttpRegistry:
    """What is registered, and how the registry behaves; ``url`` is where it listens."""

    url: str = ""
    subjects: dict[str, list[int]] = field(default_factory=dict)
    """The ids of the schemas of a subject, in the order of its versions."""
    schemas: list[Schema] = field(default_factory=list)
    """All schemas; the id of one is its place, from 1 on."""
    refusals: dict[str, list[str]] = field(default_factory=dict)
    """What is said against any schema that is new to a subject."""
    levels: dict[str, str] = field(default_factory=dict)
    """The compatibility of subjects that have their own."""
    users: dict[str, str] = field(default_factory=dict)
    """Passwords by user; without any everybody is let in."""
    fails_with: Answer | None = None
    """What every request is answered with."""
    asked: list[str] = field(default_factory=list)
    """Method and path of each request."""
    goes_on: Event = field(default_factory=Event)
    """Requests wait until it is set."""

    def settings(self, **more: object) -> dict[str, Any]:
        """Settings of a client that does not try again."""
        return {"url": self.url, "max.retries": 0, **{name.replace("_", "."): value for name, value in more.items()}}

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: list[Schema] | None = None) -> int:
        """Registers a schema, whatever its subject says; returns its id."""
        return self._registered(subject, _sent({"schema": schema, "schemaType": kind, "references": references or []}))

    def is_changed(self) -> bool:
        """Whether a request was made that changes a registry."""
        return any(
            method in ("PUT", "DELETE") or (method == "POST" and path.startswith("/subjects/") and "/versions" in path)
            for method, path in (one.split(" ", 1) for one in self.asked)
        )

    def answer(self, method: str, url: str, body: Schema, authorization: str | None) -> Answer:
        """What a request is answered with."""
        self.asked.append(f"{method} {url}")
        self.goes_on.wait()
        if self.fails_with is not None:
            return self.fails_with
        if not self._lets_in(authorization):
            return 401, {"error_code": 401, "message": "Unauthorized"}
        split = urlsplit(url)
        verbose = parse_qs(split.query).get("verbose", ["false"])[0].lower() == "true"
        match [unquote(part) for part in split.path.strip("/").split("/")], method:
            case ["subjects", subject], "POST":
                return self._lookup(subject, _sent(body))
            case ["subjects", subject, "versions"], "GET":
                return self._of_subject(subject, lambda ids: list(range(1, len(ids) + 1)))
            case ["subjects", subject, "versions"], "POST":
                return 200, {"id": self._registered(subject, _sent(body))}
            case ["subjects", subject, "versions", "latest"], "GET":
                return self._of_subject(subject, lambda ids: self._version(subject, len(ids)))
            case ["schemas", "ids", number], "GET":
                found = self.schemas[int(number) - 1 : int(number)]
                return (
                    (200, found[0]) if found else (404, {"error_code": 40403, "message": f"Schema {number} not found"})
                )
            case ["compatibility", "subjects", subject, "versions"], "POST":
                said = self.refusals.get(subject, [])
                return 200, {"is_compatible": not said, **({"messages": said} if verbose else {})}
            case ["config", subject], "GET" if subject not in self.levels:
                return 404, {"error_code": 40408, "message": f"Subject '{subject}' does not have subject-level config"}
            case ["config", *rest], "GET":
                return 200, {"compatibilityLevel": self.levels.get("".join(rest), "BACKWARD")}
            case _:
                return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _lets_in(self, authorization: str | None) -> bool:
        if not self.users:
            return True
        if authorization is None:
            return False
        user, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        return self.users.get(user) == password

    def _of_subject(self, subject: str, found: Callable[[list[int]], Any]) -> Answer:
        if subject not in self.subjects:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        return 200, found(self.subjects[subject])

    def _lookup(self, subject: str, schema: Schema) -> Answer:
        ids = self.subjects.get(subject, [])
        for version, one in enumerate(ids, 1):
            if self.schemas[one - 1] == schema:
                return 200, self._version(subject, version)
        return (
            self._of_subject(subject, list) if not ids else (404, {"error_code": 40403, "message": "Schema not found"})
        )

    def _version(self, subject: str, version: int) -> Schema:
        schema_id = self.subjects[subject][version - 1]
        return {"subject": subject, "version": version, "id": schema_id, **self.schemas[schema_id - 1]}

    def _registered(self, subject: str, schema: Schema) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        schema_id = self.schemas.index(schema) + 1
        self.subjects.setdefault(subject, []).append(schema_id)
        return schema_id


def _sent(body: Schema) -> Schema:
    """A schema in one form, whatever is left out of a request."""
    text, kind = body["schema"], body.get("schemaType", "AVRO")
    plain = text if kind == "PROTOBUF" else json.loads(text)
    return {"schema": text if kind == "PROTOBUF" else json.dumps(plain), "schemaType": kind} | (
        {"references": body["references"]} if body.get("references") else {}
    )


@contextmanager
def http_registry() -> Iterator[HttpRegistry]:
    """Runs a registry."""
    registry = HttpRegistry()
    registry.goes_on.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or "{}")
            status, found = registry.answer(self.command, self.path, body, self.headers.get("Authorization"))
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.do_GET()

        def do_PUT(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        registry.goes_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
