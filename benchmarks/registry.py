"""A schema registry for the length of a benchmark: the few requests that serdes make, over HTTP as with a real one.

Invariant: a schema has one number, whatever subject it is registered under.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Schemas:
    """Schemas by their numbers."""

    def __init__(self, *schemas: str) -> None:
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()
        for schema in schemas:
            self.registered(schema)

    def registered(self, schema: str) -> int:
        """The number of a schema, which is the next one when it is new; how the JSON is written does not matter."""
        with self._lock:
            return self._numbers.setdefault(json.dumps(json.loads(schema)), len(self._numbers) + 1)

    def answer(self, path: str, body: bytes) -> dict[str, Any] | None:
        """The answer to a request; ``None`` when there is no such thing."""
        match path.partition("?")[0].strip("/").split("/"):
            case ["subjects", _, "versions"] if body:
                return {"id": self.registered(json.loads(body)["schema"])}
            case ["subjects", subject] if body:
                schema = json.loads(body)["schema"]
                return {"subject": subject, "version": 1, "id": self.registered(schema), "schema": schema}
            case ["schemas", "ids", number]:
                by_number = {found: schema for schema, found in self._numbers.items()}
                return {"schema": by_number[int(number)]} if int(number) in by_number else None
        return None


@contextlib.contextmanager
def schema_registry(schemas: Schemas) -> Iterator[str]:
    """The address of a registry, for the length of a block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that the server looks for
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, format: str, *args: object) -> None:
            """Writes nothing."""

        def _answer(self, body: bytes) -> None:
            found = schemas.answer(self.path, body)
            content = json.dumps(found or {"error_code": 40403, "message": f"{self.path} is not there"}).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="registry", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
