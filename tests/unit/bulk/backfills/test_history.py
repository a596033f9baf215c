"""Rows of a history become records of the partitions and offsets that their columns name."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pykstreams import Consumed, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.bulk.application import Application
from pykstreams.bulk.backfills.history import HistoryReading, TopicHistory
from pykstreams.core.errors import ConfigError
from pykstreams.state.encoding.layout import unpack_headers

CONFIG = {"application.id": "shop"}
NAN = float("nan")


def places(kind: pa.DataType, partitions: list[Any], offsets: list[Any]) -> list[tuple[int, int]]:
    """The partitions and offsets of records of a topic with three partitions; their key belongs to the second."""
    found = records(len(partitions), partition=pa.array(partitions, kind), offset=pa.array(offsets, kind))
    return [(row["task"], row["offset"]) for row in found]


def records(rows: int, **columns: pa.Array) -> list[dict[str, Any]]:
    """The records of rows with these columns beside the usual ones."""
    builder = StreamsBuilder()
    builder.stream("in", Consumed(key_serde=Serdes.string(), value_serde=Serdes.string())).to("out")
    application = Application(builder.build(StreamsConfig(CONFIG)), CONFIG)
    usual = {name: pa.array([data] * rows) for name, data in (("key", b"a"), ("value", b"v"), ("timestamp", 5))}
    reading = HistoryReading(application, "in", 0, 3, TopicHistory(None))
    found = reading.records([pa.RecordBatch.from_pydict(usual | columns)], 0)
    return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])), [{"key": "a", "value": b"x"}]),
        (pa.list_(pa.struct([("value", pa.string()), ("key", pa.string())])), [{"key": "a", "value": "x"}]),
        (pa.map_(pa.string(), pa.binary()), [("a", b"x")]),
    ],
)
def test_headers_are_structs_of_key_and_value_whose_texts_are_in_utf_8_or_maps(kind: pa.DataType, value: Any) -> None:
    found = records(3, headers=pa.array([value, None, []], kind))

    assert [(("a", b"x"),), (), ()] == [unpack_headers(row["headers"] or b"") for row in found]
    assert [None] == [row["headers"] for row in records(1, headers=pa.nulls(1))]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (pa.string(), "Accept: text", "is of type string .*; expected lists of structs of key and value"),
        (pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())])), [{"key": "a", "value": 1}], "Unsupported"),
        (pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])), [{"name": "a"}], "has one without key"),
        (pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])), [None], "has one without key"),
    ],
)
def test_a_column_of_headers_that_are_none_is_refused(kind: pa.DataType, value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=f"column 'headers' of the history of topic 'in' .*{said}.*give it another"):
        records(1, headers=pa.array([value], kind))


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.float64(), pa.float32(), pa.decimal128(10, 2)])
def test_whole_numbers_of_every_type_are_partitions_and_offsets(kind: pa.DataType) -> None:
    """Integers of a column with nulls are doubles to pandas, and decimals to databases."""
    assert [(2, 77), (1, -1), (0, 78)] == places(kind, [2, None, 0], [77, None, 78])


def test_what_is_not_known_is_null_or_no_number() -> None:
    assert [(1, -1), (2, 7)] == places(pa.float64(), [NAN, 2], [None, 7])
    assert [(1, -1)] == places(pa.null(), [None], [None])


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (pa.string(), "2", "column 'partition' of the history of topic 'in' is of type string; expected whole numbers"),
        (pa.bool_(), True, "is of type bool; expected whole numbers"),
        (pa.float64(), 1.5, "is of type double; expected whole numbers .Float value 1.5.* was truncated"),
        (
            pa.decimal128(5, 2),
            Decimal("1.50"),
            r"is of type decimal128\(5, 2\); expected .*would cause data loss",
        ),
        (pa.uint64(), 2**63, "is of type uint64; expected whole numbers .*not in range"),
    ],
)
def test_a_column_of_partitions_that_is_not_of_whole_numbers_is_refused(
    kind: pa.DataType, value: object, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        places(kind, [value], [None])
