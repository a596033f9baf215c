"""Serdes and the ``types`` command with a real schema registry: what it registers, takes and refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from pykstreams import Produced, Serdes, StreamsBuilder
from pykstreams.core.errors import SerdeError
from pykstreams.serdes import SchemaRegistryAvroSerde, SchemaRegistryJsonSerde, SchemaRegistryProtobufSerde
from pykstreams.testing import TopologyTestDriver
from tests.registries.apicurio import apicurio, set_compatibility
from tests.registries.messages import order_class

pytestmark = [pytest.mark.integration, pytest.mark.nightly, pytest.mark.xdist_group("apicurio")]

ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string"}
WITH_DEFAULT = {**NOTE, "default": ""}

MakeSerde = Callable[[SchemaRegistryClient], Any]

SCRIPT = """
from pykstreams import Produced, Serdes, StreamsBuilder
from pykstreams.serdes import SchemaRegistryAvroSerde
order = SchemaRegistryAvroSerde({{"url": {url!r}}}, {{"type": "record", "name": "Order", "fields": {fields!r}}})
application_id = "shop"
builder = StreamsBuilder()
orders = builder.stream("notes", Serdes.string(), Serdes.string()).map_values(lambda note: {{"id": 1, "note": note}})
orders.to({topic!r}, Produced(key_serde=Serdes.string(), value_serde=order))
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with apicurio(tmp_path_factory.mktemp("registry") / "log") as found:
        set_compatibility(found, "BACKWARD")
        yield found


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as found:
        yield found


def avro(client: SchemaRegistryClient, *more: dict[str, str]) -> SchemaRegistryAvroSerde[Any]:
    return SchemaRegistryAvroSerde(client, {"type": "record", "name": "Order", "fields": [ID, *more]})


def json_schema(client: SchemaRegistryClient) -> SchemaRegistryJsonSerde[Any]:
    return SchemaRegistryJsonSerde(
        client, {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
    )


def protobuf(client: SchemaRegistryClient) -> SchemaRegistryProtobufSerde[Any]:
    return SchemaRegistryProtobufSerde(client, order_class())


def asked(folder: Path, url: str, topic: str, *fields: dict[str, str]) -> tuple[int, str]:
    """The exit code of the command and what it says of a schema with these fields, for the values of a topic."""
    file = folder / "shop.py"
    file.write_text(SCRIPT.format(url=url, topic=topic, fields=list(fields)), encoding="utf-8")
    command = [sys.executable, "-m", "pykstreams", "types", str(file), "--registry"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, " ".join(done.stdout.split())


@pytest.mark.parametrize("make", [avro, json_schema, protobuf])
def test_values_come_back_through_topics_whose_schemas_the_registry_has(
    client: SchemaRegistryClient, make: MakeSerde
) -> None:
    order = order_class()(id=5) if make is protobuf else {"id": 5}
    topic, orders = f"orders-{make.__name__}", make(client)
    builder = StreamsBuilder()
    stream = builder.stream(topic, Serdes.string(), orders)
    stream.to(f"{topic}-out", Produced(key_serde=Serdes.string(), value_serde=orders))

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic(topic, Serdes.string(), make(client)).pipe_input("ann", order)
        # another client, which has to ask the registry for the schema
        found = driver.create_output_topic(f"{topic}-out", Serdes.string(), make(client)).read_key_value()

    assert found == ("ann", order)


def test_the_command_says_of_a_schema_what_the_registry_does_with_it(
    url: str, client: SchemaRegistryClient, tmp_path: Path
) -> None:
    assert "bills-value new subject" in asked(tmp_path, url, "bills", ID, NOTE)[1]

    avro(client).serialize("bills", {"id": 1})
    known, of_known = asked(tmp_path, url, "bills", ID)
    wider, of_wider = asked(tmp_path, url, "bills", ID, WITH_DEFAULT)
    refused, of_refused = asked(tmp_path, url, "bills", ID, NOTE)

    assert (known, wider, refused) == (0, 0, 2)
    assert "bills-value registered" in of_known
    assert "bills-value new version" in of_wider
    assert "bills-value incompatible" in of_refused
    assert "compatibility is BACKWARD; change the schema as BACKWARD allows" in of_refused

    avro(client, WITH_DEFAULT).serialize("bills", {"id": 1, "note": "wide"})
    with pytest.raises(SerdeError, match=r"SchemaRegistryError.*409"):
        avro(client, NOTE, {"name": "more", "type": "string"}).serialize("bills", {"id": 1, "note": "", "more": ""})


def test_records_are_read_with_the_schema_of_their_writer(client: SchemaRegistryClient) -> None:
    old, new = avro(client), avro(client, WITH_DEFAULT)
    written = [old.serialize("evolved", {"id": 1}), new.serialize("evolved", {"id": 2, "note": "new"})]

    assert [new.deserialize("evolved", one) for one in written] == [{"id": 1}, {"id": 2, "note": "new"}]
