"""Answers what a product costs, now and at any time of the last week, over HTTP: the state of a table, asked directly.

    python examples/more/price_server.py --bootstrap-servers localhost:9092
    curl localhost:7070/prices/tea
    curl 'localhost:7070/prices/tea?as_of=2026-01-01T00:00Z'

``prices`` holds prices in cents under the name of the product, each with the time from which on it is valid; a record
without value takes a product off the list. The table is *versioned*: it keeps every price of the last week, and takes
prices that arrive late at their place in time.

Each of several such servers answers for the products of its own partitions. ``application.server`` says how they reach
each other; who is asked for a product that it does not have answers 404.
"""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pykstreams import KafkaStreams, Materialized, QueryableStoreTypes, Stores, StreamsBuilder, Topology
from pykstreams.errors import InvalidStateStoreError

application_id = "price-server"

WEEK = timedelta(days=7)


def build() -> Topology:
    builder = StreamsBuilder()
    kept = Materialized[str, int](Stores.persistent_versioned_key_value_store("prices", WEEK))
    builder.table("prices", str, int, materialized=kept)
    return builder.build()


def answer(streams: KafkaStreams, url: str) -> tuple[int, dict[str, Any]]:
    """The status and the body for a request."""
    parts = urlsplit(url)
    folder, _, product = parts.path.strip("/").partition("/")
    if folder != "prices" or not product:
        return 404, {"error": "ask for /prices/<product>"}
    try:
        wanted = parse_qs(parts.query).get("as_of")
        as_of = datetime.fromisoformat(wanted[0]) if wanted else None
        record = streams.store("prices", QueryableStoreTypes.VERSIONED_KEY_VALUE_STORE).get(product, as_of)
    except ValueError as error:  # no time, or one without a zone
        return 400, {"error": str(error)}
    except InvalidStateStoreError as error:  # tasks are on their way: the one who asks may ask again
        return 503, {"error": str(error)}
    if record is None:
        return 404, {"error": f"no price of {product!r}"}
    return 200, {"product": product, "cents": record.value, "since_ms": record.timestamp}


def server(streams: KafkaStreams, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(streams, self.path)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--state-dir", default="/tmp/price-server")
    parser.add_argument("--port", type=int, default=7070)
    options = parser.parse_args()
    config = {
        "application.id": application_id,
        "bootstrap.servers": options.bootstrap_servers,
        "state.dir": options.state_dir,
        "application.server": f"localhost:{options.port}",
    }
    with KafkaStreams(build(), config) as streams, server(streams, options.port) as http:
        try:
            http.serve_forever()
        except KeyboardInterrupt:
            print("stopping")


if __name__ == "__main__":
    main()
