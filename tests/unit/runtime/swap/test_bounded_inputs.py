"""Inputs that are read again: from where, up to where, and when not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pykstreams.core.errors import BootstrapError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.swap.bounded_inputs import BoundedInputs
from tests.unit.runtime.cluster_fakes import FakeChangelogs

TASK = TaskId(0, 0)
ORDERS, PRICES = TopicPartition("orders", 0), TopicPartition("prices", 0)


class Reader(FakeChangelogs):
    closed = False

    def close(self) -> None:
        self.closed = True


class FedTask:
    """A task that keeps the offsets it is given."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, list[int]] = {}
        self.waiting: dict[TopicPartition, int] = {}

    def buffered_of(self, place: TopicPartition) -> int:
        return self.waiting.get(place, 0)

    def add(self, place: TopicPartition, messages: Sequence[Any]) -> None:
        self.offsets.setdefault(place, []).extend(message.offset() for message in messages)


class BoundedInputsBench:
    def __init__(self) -> None:
        self.readers: list[Reader] = []
        self.task = FedTask()
        self.inputs = BoundedInputs(TASK, {ORDERS: (2, ""), PRICES: (0, "")}, self._make)
        self.reader = Reader()

    def _make(self) -> Reader:
        self.readers.append(self.reader)
        return self.reader

    def read(self) -> None:
        self.inputs.read(self.inputs.limits, self.task)


@pytest.fixture
def bench() -> BoundedInputsBench:
    return BoundedInputsBench()


def test_an_input_of_which_nothing_was_committed_is_not_read(bench: BoundedInputsBench) -> None:
    bench.inputs.limit({})
    bench.read()

    assert (bench.readers, bench.task.offsets) == ([], {})
    assert bench.inputs.are_at(bench.inputs.limits)


def test_records_below_the_limit_are_given_and_no_others(bench: BoundedInputsBench) -> None:
    bench.inputs.limit({ORDERS: (5, "")})
    before = bench.inputs.lag(ORDERS), bench.inputs.are_at(bench.inputs.limits)
    bench.reader.put(ORDERS, 2, 4, 5, 6)
    bench.read()

    assert before == (3, False)
    assert bench.task.offsets == {ORDERS: [2, 4]}
    assert (bench.inputs.positions, bench.inputs.lag(ORDERS)) == ({ORDERS: 5, PRICES: 0}, 0)
    assert bench.inputs.are_at(bench.inputs.limits)


def test_reading_goes_on_at_the_old_limit_when_there_is_a_higher_one(bench: BoundedInputsBench) -> None:
    bench.inputs.limit({ORDERS: (3, "")})
    bench.reader.put(ORDERS, 2, 3, 4)
    bench.read()
    at_the_limit = dict(bench.reader.assigned)
    bench.inputs.limit({ORDERS: (5, "")})
    bench.read()

    assert (at_the_limit, bench.reader.assigned) == ({}, {ORDERS: 3})


def test_a_partition_with_many_records_waiting_is_not_read_on(bench: BoundedInputsBench) -> None:
    bench.inputs.limit({ORDERS: (5, ""), PRICES: (9, "")})
    bench.task.waiting[ORDERS] = 10_000
    bench.read()

    assert bench.reader.assigned == {PRICES: 0}


def test_records_that_were_deleted_meanwhile_are_an_error_that_says_so(bench: BoundedInputsBench) -> None:
    bench.inputs.limit({ORDERS: (5, "")})
    bench.reader.batches.append(RestoreBatch(out_of_range=[ORDERS]))

    with pytest.raises(BootstrapError, match="at offset 2 of orders-0: the records there were deleted meanwhile"):
        bench.read()


def test_paused_and_closed_it_reads_nothing(bench: BoundedInputsBench) -> None:
    bench.inputs.limit({ORDERS: (5, "")})
    bench.read()
    bench.inputs.pause()
    bench.inputs.close()

    assert (bench.reader.assigned, bench.reader.closed) == ({}, True)
