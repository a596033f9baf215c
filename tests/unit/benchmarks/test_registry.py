"""The registry that benchmarks run, as the serdes of pykstreams meet it."""

from __future__ import annotations

from typing import Any

from orjson import loads

from benchmarks.registry import Schemas, schema_registry
from benchmarks.topics.avro_events import SCHEMA, SCHEMA_TEXT, avro_events
from benchmarks.topics.payloads import json_events
from pykstreams.serdes import SchemaRegistryAvroSerde


def test_a_serde_reads_the_events_that_a_topic_is_filled_with_and_writes_the_same_bytes() -> None:
    with schema_registry(Schemas(SCHEMA_TEXT)) as registry:
        serde: SchemaRegistryAvroSerde[Any] = SchemaRegistryAvroSerde(registry, SCHEMA)
        for (_, avro, _), (_, json, _) in zip(avro_events(3), json_events(3), strict=True):
            event = serde.deserialize("events", avro)

            assert event == loads(json)
            assert serde.serialize("events", event) == avro


def test_a_schema_keeps_its_number() -> None:
    schemas = Schemas('{"type": "long"}')

    assert schemas.registered('{"type":"string"}') == 2
    assert schemas.registered('{"type":"long"}') == 1
    assert schemas.answer("/schemas/ids/2?subject=", b"") == {"schema": '{"type": "string"}'}
    assert schemas.answer("/schemas/ids/3", b"") is None
