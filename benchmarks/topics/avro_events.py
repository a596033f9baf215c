"""The events in Avro, as a producer with a schema registry writes them.

::

    00 {schema id: 4, big-endian} {payload}
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any, Final

from fastavro import parse_schema, schemaless_writer
from orjson import loads

from benchmarks.topics.payloads import Payload, json_events

SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "region", "type": "string"},
        {"name": "amount", "type": "long"},
        {"name": "price", "type": "double"},
        {"name": "note", "type": "string"},
    ],
}
SCHEMA_TEXT: Final = json.dumps(SCHEMA)

SCHEMA_ID: Final = 1
"""The number under which the registry must have the schema."""

HEAD: Final = b"\0" + SCHEMA_ID.to_bytes(4, "big")


def avro_events(count: int) -> Iterator[Payload]:
    """The events of ``json_events``."""
    schema = parse_schema(SCHEMA)
    for key, value, timestamp in json_events(count):
        output = io.BytesIO(HEAD)
        output.seek(len(HEAD))
        schemaless_writer(output, schema, loads(value))
        yield key, output.getvalue(), timestamp
