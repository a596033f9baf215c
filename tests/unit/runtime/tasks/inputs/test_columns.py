"""Batches that are read ahead: nobody sees that they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pykstreams.core.errors import StreamsError
from pykstreams.core.handlers import ErrorHandlerContext, ErrorHandlerResponse
from pykstreams.core.ids import TopicPartition
from pykstreams.core.record import ConsumerRecord
from pykstreams.core.types import ColumnReader, Headers
from pykstreams.runtime.tasks.inputs.columns import READ_AHEAD_BYTES, Columns
from pykstreams.serdes import JsonSerde, Serdes, StringSerde
from tests.unit.runtime.tasks.fakes import TaskBench, each, message, node, sink, source

IN = TopicPartition("in", 0)


class ReadersThatCount:
    """Reads text; keeps how long the columns were that it got."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, column: Iterable[bytes]) -> list[str]:
        found = [data.decode() for data in column]
        self.sizes.append(len(found))
        return found


def rows(
    *batch: Any, keys: ColumnReader | None = None, values: ColumnReader | None = None
) -> tuple[list[tuple[Any, ...]], bool]:
    found, is_read = Columns(keys, values).rows(batch)
    return [row[1:] for row in found], is_read


def test_a_batch_is_read_whole_with_its_times_and_headers() -> None:
    read = ReadersThatCount()
    batch = message("in", 0, "a", 5, key=b"k", headers=[("h", b"1")]), message("in", 1, "b", 3, key=b"l")

    assert rows(*batch, keys=read, values=read) == (
        [("k", "a", 5, [("h", b"1")]), ("l", "b", 3, ())],
        True,
    )
    assert read.sizes == [2, 2]


def test_nulls_stay_where_they_are_and_no_reader_gets_them() -> None:
    read = ReadersThatCount()
    batch = [message("in", i, value, i, key=None) for i, value in enumerate(["a", None, "", "b", None])]

    found, is_read = rows(*batch, keys=read, values=read)

    assert is_read
    assert [row[:2] for row in found] == [(None, "a"), (None, None), (None, ""), (None, "b"), (None, None)]
    assert read.sizes == [0, 3]


def test_a_batch_stays_in_bytes_where_one_side_is_read_one_by_one() -> None:
    read = ReadersThatCount()

    assert rows(message("in", 0, "a", 5), keys=read) == ([(b"k", b"a", 5, ())], False)
    assert rows(message("in", 0, "a", 5), values=read) == ([(b"k", b"a", 5, ())], False)


def test_a_batch_stays_in_bytes_when_one_value_cannot_be_read() -> None:
    read = ReadersThatCount()

    found, is_read = rows(message("in", 0, "a", 5), message("in", 1, b"\xff", 6), keys=read, values=read)

    assert not is_read
    assert found == [(b"k", b"a", 5, ()), (b"k", b"\xff", 6, ())]


def test_a_batch_of_large_values_is_not_read_ahead() -> None:
    read, half = ReadersThatCount(), b"x" * (READ_AHEAD_BYTES // 2)

    assert rows(message("in", 0, half, 5), message("in", 1, half, 5), keys=read, values=read)[1]
    assert not rows(message("in", 0, half, 5), message("in", 1, half + b"x", 5), keys=read, values=read)[1]


def reading(value_serde: Any, did: list[Any], **config: Any) -> TaskBench:
    return TaskBench(
        source("SOURCE", "in", children=("NODE",), value_deserializer=value_serde),
        node("NODE", each(lambda key, value: did.append(value)), "SINK"),
        sink("SINK", "out", value_serializer=Serdes.string()),
        config=config,
    )


def test_what_cannot_be_read_comes_to_the_handler_between_the_records_beside_it() -> None:
    did: list[Any] = []

    def handler(context: ErrorHandlerContext, record: ConsumerRecord, exception: Exception) -> ErrorHandlerResponse:
        did.append(f"cannot read offset {context.offset}")
        return ErrorHandlerResponse.resume()

    bench = reading(JsonSerde(), did, **{"deserialization.exception.handler": handler})

    bench.feed(message("in", 0, "1", 5), message("in", 1, "{", 5), message("in", 2, "3", 5))

    assert did == [1, "cannot read offset 1", 3]


def test_records_before_one_that_ends_the_task_are_processed() -> None:
    did: list[Any] = []
    bench = reading(Serdes.long(), did)

    with pytest.raises(StreamsError, match="cannot read the value"):
        bench.feed(message("in", 0, b"\0" * 8, 5), message("in", 1, b"\0" * 8, 5), message("in", 2, b"\0", 5))

    assert did == [0, 0]


class OtherMessage:
    """A record as no client and no driver makes them."""


def test_no_record_is_lost_with_one_that_is_of_another_class() -> None:
    did: list[Any] = []
    bench = reading(Serdes.string(), did)
    batch: Any = [message("in", 0, "a", 5), OtherMessage()]
    bench.task.add(IN, batch)

    with pytest.raises(StreamsError):
        bench.task.process(10)

    assert did == []
    assert bench.task.buffered == 2


class Noting(StringSerde):
    """A user's serde, made of one of ours."""

    did: list[Any]

    def decoder(self, topic: str) -> Any:
        def decode(data: bytes | None, headers: Headers) -> str:
            self.did.append(f"reads {data!r}")
            return "read"

        return decode


def test_a_deserializer_of_a_user_is_called_when_its_record_comes() -> None:
    did: list[Any] = []
    serde = Noting()
    object.__setattr__(serde, "did", did)
    bench = reading(serde, did)

    bench.feed(message("in", 0, "a", 5), message("in", 1, "b", 5))

    assert did == ["reads b'a'", "read", "reads b'b'", "read"]


def test_a_function_that_reads_json_is_called_when_its_record_comes() -> None:
    did: list[Any] = []

    def loads(data: bytes) -> str:
        did.append(data)
        return "read"

    bench = reading(JsonSerde(loads=loads), did)

    bench.feed(message("in", 0, "a", 5), message("in", 1, "b", 5))

    assert did == [b"a", "read", b"b", "read"]
