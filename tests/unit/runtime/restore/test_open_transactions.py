"""Restoring that stands still in front of an open transaction says so."""

from __future__ import annotations

import logging

import pytest

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.restore.open_transactions import PATIENCE_S
from pykstreams.runtime.restore.restore import Restorer, StateRestoreListener
from tests.unit.runtime.cluster_fakes import FakeChangelogs, FakeClock, FakeRestoredStore

TASK = TaskId(0, 1)
LOG = TopicPartition("shop-counts-changelog", 1)


class RestoreBench:
    """A changelog of ten offsets, of which the last four are in an open transaction."""

    def __init__(self) -> None:
        self.clock, self.logs, self.store = FakeClock(), FakeChangelogs(), FakeRestoredStore()
        self.logs.ends[LOG] = 10
        self.restorer = Restorer(self.logs, self.logs, StateRestoreListener(), clock=self.clock)
        self.restorer.add(TASK, {LOG: self.store}, {})
        self.logs.put(LOG, 0, 1, 2, 3, 4, 5)
        self.restorer.step(0)
        self.logs.batches.append(RestoreBatch(positions={LOG: 6}, at_end=[LOG]))
        self.restorer.step(0)

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.restorer.step(0)


@pytest.fixture
def bench() -> RestoreBench:
    return RestoreBench()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_open_transaction_is_named_with_the_way_to_end_it(
    bench: RestoreBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.wait(PATIENCE_S)

    assert lines(caplog) == [
        "restoring shop-counts-changelog-1 has stood at offset 6 of 10 for 15 s: what follows is in a transaction that "
        "is still open. It goes on when the brokers end it (transaction.timeout.ms of the producer that has left it). "
        "One that stays open longer is found with `kafka-transactions.sh find-hanging --topic shop-counts-changelog "
        "--partition 1`, and ended with `kafka-transactions.sh abort`"
    ]


def test_it_is_logged_once_per_interval(bench: RestoreBench, caplog: pytest.LogCaptureFixture) -> None:
    bench.wait(PATIENCE_S)
    for _ in range(11):
        bench.wait(1)

    assert [text.split(" for ")[1][:4] for text in lines(caplog)] == ["15 s", "25 s"]


def test_transaction_that_ends_in_time_is_not_mentioned(bench: RestoreBench, caplog: pytest.LogCaptureFixture) -> None:
    bench.wait(PATIENCE_S - 1)
    bench.logs.put(LOG, position=8)
    bench.restorer.step(0)
    bench.wait(2)

    assert lines(caplog) == []
    assert bench.restorer.is_restoring(TASK)


def test_task_that_has_left_is_not_mentioned(bench: RestoreBench, caplog: pytest.LogCaptureFixture) -> None:
    bench.restorer.remove(TASK)
    bench.wait(PATIENCE_S)

    assert lines(caplog) == []
