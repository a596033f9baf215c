"""Records of topics are read by serdes, each for itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pykstreams import Consumed, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.bulk.application import Application
from pykstreams.bulk.sources.rows import RowReader
from pykstreams.bulk.sources.topic_parts import COLUMNS
from pykstreams.spark import KafkaTopic, StoreBootstrap

CONFIG = {"application.id": "shop", "bootstrap.servers": "nowhere:9"}
GOOD, BAD = (5).to_bytes(8), b"12"


def read(values: list[bytes | None], **said: Any) -> list[Any]:
    builder = StreamsBuilder()
    builder.table("numbers", Consumed(key_serde=Serdes.string(), value_serde=Serdes.long()))
    topic = KafkaTopic("numbers")
    rows = [
        {"key": b"a", "value": value, "timestamp": 7, "partition": 0, "offset": at} for at, value in enumerate(values)
    ]
    application = Application(builder.build(StreamsConfig(CONFIG)), CONFIG)
    reader = RowReader(StoreBootstrap("numbers", topic, **said), 0, application, topic)
    return list(reader(pa.RecordBatch.from_pylist(rows, COLUMNS)))


def test_keys_and_values_are_read_by_the_serdes_of_the_source_node() -> None:
    assert [("a", 5, 7, None, None), ("a", None, 7, None, None)] == read([GOOD, None])


def test_records_of_a_changelog_stay_bytes() -> None:
    assert [(b"a", GOOD, 7, None, None)] == read([GOOD], content="changelog")


def test_functions_get_what_the_serdes_have_read() -> None:
    assert [("A", 6, 7, None, None)] == read(
        [GOOD], key=lambda row: row["key"].upper(), value=lambda row: row["value"] + 1
    )
    assert [("a", 5, 1, None, None)] == read([GOOD], row=lambda row: (row["key"], row["value"], row["offset"] + 1))


@pytest.mark.parametrize(
    "said", [{}, {"key": lambda row: row["key"]}, {"row": lambda row: (row["key"], row["value"], 1)}]
)
def test_a_record_that_a_serde_refuses_is_an_error_of_its_own(said: dict[str, Any]) -> None:
    first, second, third = read([GOOD, BAD, GOOD], **said)

    assert first[:2] == third[:2] == ("a", 5)
    assert isinstance(second, Exception)
