"""The end of a worker's way out: what is waited for, and what is not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, Message, Producer

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TaskMigratedError
from pykstreams.core.record import ProducerRecord
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.clients.producer import DeliveryFailures, WorkerProducer
from pykstreams.runtime.topics.partition_counts import PartitionCounts
from pykstreams.runtime.worker.commits.output import WorkerOutput
from tests.unit.runtime.cluster_fakes import FakeClock
from tests.unit.runtime.tasks.fakes import message
from tests.unit.runtime.worker.commits.steps import steps_over


class NoClient(Producer):
    """A client for the types only: nothing of it is made, and nothing is sent through it."""

    def __init__(self, undelivered: int = 0) -> None:
        """Makes nothing; ``undelivered`` records stay whatever it is told."""
        self.undelivered = undelivered

    def flush(self, timeout: float = -1) -> int:
        return self.undelivered

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Drops nothing."""


class EndingProducer(WorkerProducer):
    """A producer that notes how it ends; ``failure`` is raised when it is flushed."""

    def __init__(self, *, broken: bool, failure: Exception | None) -> None:
        super().__init__(NoClient(), DeliveryFailures(), FakeClock())
        self.history: list[str] = []
        self._broken = broken
        self._failure = failure

    def flush(self, timeout_s: float) -> int:
        self.history.append("flush")
        if self._failure is not None:
            raise self._failure
        return 0

    def discard(self) -> None:
        self.history.append("discard")

    def close(self) -> None:
        self.history.append("close")


def output_over(*producers: WorkerProducer, guarantee: str = "at_least_once") -> WorkerOutput:
    clock, made = FakeClock(), list(producers)
    return WorkerOutput(
        config=StreamsConfig({"application.id": "shop", "bootstrap.servers": "b:1", "processing.guarantee": guarantee}),
        clock=clock,
        partition_counts=PartitionCounts(lambda: {}, clock, 1000),
        make_producer=lambda: made.pop(0),
        make_steps=steps_over,
    )


def test_output_waits_for_deliveries_when_it_is_closed() -> None:
    producer = EndingProducer(broken=False, failure=None)
    output_over(producer).close()

    assert producer.history == ["flush", "close"]


def test_broken_producer_is_not_waited_for() -> None:
    producer = EndingProducer(broken=True, failure=TaskMigratedError("delivering records failed"))
    output_over(producer).close()

    assert producer.history == ["close"]


def test_producer_is_let_go_also_when_it_breaks_at_the_end() -> None:
    producer = EndingProducer(broken=False, failure=TaskMigratedError("delivering records failed"))
    with pytest.raises(TaskMigratedError):
        output_over(producer).close()

    assert producer.history == ["flush", "close"]


class DroppingProducer(EndingProducer):
    """A producer that drops what it has not delivered, if it ``can``."""

    def __init__(self, *, can: bool) -> None:
        super().__init__(broken=False, failure=None)
        self._can = can

    def drop_undelivered(self) -> bool:
        self.history.append("drop")
        return self._can


def test_producer_stays_where_it_drops_what_it_has_not_delivered() -> None:
    """Brokers refuse what comes late of the dropped records then; another producer would stand beside it."""
    producer, another = DroppingProducer(can=True), DroppingProducer(can=True)
    output = output_over(producer, another)
    collector = output.collector
    output.renew()
    output.close()

    assert output.collector is not collector
    assert (producer.history, another.history) == (["drop", "flush", "close"], [])


def test_producer_that_cannot_drop_what_it_has_not_delivered_is_made_anew() -> None:
    producer, another = DroppingProducer(can=False), DroppingProducer(can=True)
    output = output_over(producer, another)
    output.renew()
    output.close()

    assert (producer.history, another.history) == (["drop", "discard"], ["flush", "close"])


def test_producer_that_can_take_nothing_any_more_is_made_anew() -> None:
    producer, another = DroppingProducer(can=True), DroppingProducer(can=True)
    output = output_over(producer, another)
    output.collector.broken = True
    output.renew()

    assert producer.history == ["discard"]


def test_producer_with_transactions_is_made_anew() -> None:
    producer, another = DroppingProducer(can=True), DroppingProducer(can=True)
    output = output_over(producer, another, guarantee="exactly_once_v2")
    output.renew()

    assert producer.history == ["discard"]


class LateClient(NoClient):
    """A client of which one thread comes late to what is dropped, and drops what was sent meanwhile, too."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[RecordMessage] = []
        self.failures = DeliveryFailures()

    def produce(self, *args: Any, **options: Any) -> None:
        topic, value, _, partition = args
        self.sent.append(message(topic, partition, value, 5))

    def flush(self, timeout: float = -1) -> int:
        dropped, self.sent = self.sent, []
        for record in dropped:
            self.failures(KafkaError(KafkaError._PURGE_QUEUE), cast(Message, record))
        return 0


def test_record_that_is_dropped_late_with_those_of_before_keeps_its_task_from_the_commit() -> None:
    client = LateClient()
    output = output_over(WorkerProducer(client, client.failures, FakeClock()))
    output.collector.send(ProducerRecord("counts", b"a", b"given up", 0))
    output.renew()
    output.collector.send(ProducerRecord("counts", b"a", b"in its place", 0))

    with pytest.raises(TaskMigratedError, match=r"record to counts .* was not delivered: .*; it is sent again"):
        output.collector.flush()


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Cycles of garbage stay: a worker makes few, so that they are looked for after hours."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_client_of_a_producer_that_was_replaced_is_gone_at_once() -> None:
    clients = [NoClient(undelivered=1), NoClient()]
    output = output_over(*(WorkerProducer(client, DeliveryFailures(), FakeClock()) for client in clients))
    first, second = map(weakref.ref, clients)
    del clients

    output.renew()
    assert first() is None
    assert second() is not None

    del output
    assert second() is not None, "the worker ends its output"
