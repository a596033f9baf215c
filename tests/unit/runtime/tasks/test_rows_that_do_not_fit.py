"""A row of a store that does not fit its type today is told as that, and the record that needs it is not blamed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import pytest

from pykstreams import Consumed, JoinWindows, KStream, Materialized, Stores, StreamJoined, StreamsBuilder, TimeWindows
from pykstreams.core.errors import ProcessingError, SerdeError
from pykstreams.core.handlers import LogAndContinueProcessingExceptionHandler
from pykstreams.core.processor import Processor, PunctuationType
from pykstreams.core.record import Record
from pykstreams.core.store_topic import row_of
from pykstreams.testing import TopologyTestDriver

Build = Callable[[StreamsBuilder], None]


@dataclass
class Total:
    amount: int


def written_before(*_: object) -> Total:
    """A total as of a version whose amounts were text."""
    return Total(cast("int", "1"))


def orders(builder: StreamsBuilder) -> KStream[str, str]:
    return builder.stream("orders", str, str)


def materialized() -> Materialized[Any, Any]:
    return Materialized("totals", key_serde=str, value_serde=Total)


def aggregated(builder: StreamsBuilder) -> None:
    orders(builder).group_by_key().aggregate(lambda: Total(0), written_before, materialized=materialized())


def windowed(builder: StreamsBuilder) -> None:
    windows = orders(builder).group_by_key().windowed_by(TimeWindows(timedelta(minutes=1)))
    windows.aggregate(lambda: Total(0), written_before, materialized=materialized())


def versioned(builder: StreamsBuilder) -> None:
    store = Stores.persistent_versioned_key_value_store("totals", 60_000)
    stored: Materialized[Any, Any] = Materialized(store, key_serde=str, value_serde=Total)
    totals = orders(builder).map_values(written_before).to_table(materialized=stored)
    orders(builder).join(totals, lambda order, total: order).foreach(lambda key, order: None)


def joined(builder: StreamsBuilder) -> None:
    totals: KStream[str, Total] = orders(builder).map_values(written_before)
    options: StreamJoined[Any, Any, Any] = StreamJoined(
        key_serde=str, value_serde=Total, other_value_serde=Total, store_name="totals"
    )
    windows = JoinWindows(timedelta(minutes=1), grace=timedelta(0))
    totals.join(totals, lambda one, other: one, windows=windows, stream_joined=options)


class Read(Processor[str, str, str, str]):
    """Reads the row of each record, and writes one that does not fit."""

    def init(self, context: Any) -> None:
        self.store = context.get_state_store("totals")

    def process(self, record: Record[str, str]) -> None:
        self.store.get(record.key)
        self.store.put(record.key, written_before())


class ReadLater(Read):
    """Reads all rows from time to time."""

    def init(self, context: Any) -> None:
        super().init(context)
        context.schedule(1000, PunctuationType.STREAM_TIME, self.read_all)

    def read_all(self, now: int) -> None:
        with self.store.all() as rows:
            list(rows)

    def process(self, record: Record[str, str]) -> None:
        self.store.put(record.key, written_before())


def processed(processor: type[Read]) -> Build:
    def build(builder: StreamsBuilder) -> None:
        builder.add_state_store(Stores.key_value_store_builder(Stores.persistent_key_value_store("totals"), str, Total))
        orders(builder).process(processor, "totals")

    return build


def raised(build: Build, expected: type[Exception]) -> Exception:
    """The error of a topology that reads rows which do not fit."""
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(expected) as found:
        topic = driver.create_input_topic("orders", str, str)
        for time in (0, 1, 5000):
            topic.pipe_input("Ann", "1", timestamp=time)
    return found.value


@pytest.mark.parametrize(
    ("build", "store"),
    [
        (aggregated, "totals"),
        (windowed, "totals"),
        (versioned, "totals"),
        (joined, "totals-this-join-store"),
        (processed(Read), "totals"),
        (processed(ReadLater), "totals"),
    ],
)
def test_row_that_does_not_fit_is_told_with_its_store_and_what_to_do(build: Build, store: str) -> None:
    text = str(raised(build, ProcessingError))
    assert f"store {store!r} does not fit its type" in text
    assert ": JsonSerde(Total) cannot read 14 bytes" in text
    assert "amount: expected int, got '1'" in text
    assert "give new fields a default, or take the old type back" in text
    assert "'pykstreams reset'" in text
    assert "'pykstreams diff'" in text
    assert "go on without such records" not in text


def test_a_handler_that_goes_on_hides_neither_the_store_nor_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder()
    processed(Read)(builder)
    config = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler}
    with TopologyTestDriver(builder.build(), config) as driver:
        topic = driver.create_input_topic("orders", str, str)
        for time in range(5):
            topic.pipe_input("Ann", "1", timestamp=time)

    said = [text for text in caplog.messages if "that does not fit its type" in text]
    assert len(said) == 1
    assert "dropped a record: it needs a row of store 'totals' that does not fit its type: it was written" in said[0]
    assert "'pykstreams reset'" in said[0]


class ReadOfAnother(Read):
    """Reads the row of a customer who is in no record."""

    def process(self, record: Record[str, str]) -> None:
        self.store.put("Bob", written_before())
        self.store.get("Bob")


@pytest.mark.parametrize(
    ("build", "key"), [(aggregated, "Ann"), (processed(Read), "Ann"), (processed(ReadOfAnother), "Bob")]
)
def test_key_of_the_row_is_shown_where_it_is_read_by_its_key(build: Build, key: str) -> None:
    assert f"the row of key {key!r} in store 'totals' does not fit its type" in str(raised(build, ProcessingError))


def test_function_that_reads_the_row_is_named() -> None:
    assert "Read.process (line " in str(raised(processed(Read), ProcessingError)).partition(" (read by ")[2]


def global_store(builder: StreamsBuilder) -> None:
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("totals"), str, Total)
    builder.add_global_store(store, "orders", Read, Consumed(key_serde=str, value_serde=str))


def test_row_of_a_global_store_is_told_as_that() -> None:
    assert row_of(raised(global_store, SerdeError)) == "the row of key 'Ann' in store 'totals'"


def test_value_that_a_store_does_not_take_is_still_the_fault_of_who_put_it() -> None:
    class Puts(Read):
        def process(self, record: Record[str, str]) -> None:
            self.store.put(record.key, "text")

    builder = StreamsBuilder()
    processed(Puts)(builder)
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(ProcessingError, match="without such records"):
        driver.create_input_topic("orders", str, str).pipe_input("Ann", "1")
