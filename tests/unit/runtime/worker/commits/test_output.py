"""The end of a worker's way out: what is waited for, and what is not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TaskMigratedError
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.clients.producer import DeliveryFailures, WorkerProducer
from pykstreams.runtime.topics.partition_counts import PartitionCounts
from pykstreams.runtime.worker.commits.commit import CommitSteps, Deliveries
from pykstreams.runtime.worker.commits.output import WorkerOutput
from tests.unit.runtime.cluster_fakes import FakeClock, FakeMembership


class NoClient(Producer):
    """A client for the types only: nothing of it is made, and nothing is sent through it."""

    def __init__(self) -> None:
        """Makes nothing."""

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


def output_over(*producers: WorkerProducer) -> WorkerOutput:
    def steps(deliveries: Deliveries) -> CommitSteps:
        clock = FakeClock()
        return CommitSteps(
            deliveries=deliveries,
            membership=FakeMembership(),
            end_offsets=lambda partitions: {},
            on_committed=lambda offsets: None,
            clock=clock,
            outage=Outage("commits", clock, 300),
        )

    clock, made = FakeClock(), list(producers)
    return WorkerOutput(
        config=StreamsConfig({"application.id": "shop", "bootstrap.servers": "b:1"}),
        clock=clock,
        partition_counts=PartitionCounts(lambda: {}, clock, 1000),
        make_producer=lambda: made.pop(0),
        make_steps=steps,
    )


def test_output_waits_for_deliveries_when_it_is_closed() -> None:
    producer = EndingProducer(broken=False, failure=None)
    output_over(producer).close()

    assert producer.history == ["flush", "discard"]


def test_broken_producer_is_not_waited_for() -> None:
    producer = EndingProducer(broken=True, failure=TaskMigratedError("delivering records failed"))
    output_over(producer).close()

    assert producer.history == ["discard"]


def test_producer_is_let_go_also_when_it_breaks_at_the_end() -> None:
    producer = EndingProducer(broken=False, failure=TaskMigratedError("delivering records failed"))
    with pytest.raises(TaskMigratedError):
        output_over(producer).close()

    assert producer.history == ["flush", "discard"]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Cycles of garbage stay: a worker makes few, so that they are looked for after hours."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_client_of_a_producer_that_was_replaced_is_gone_at_once() -> None:
    clients = [NoClient(), NoClient()]
    output = output_over(*(WorkerProducer(client, DeliveryFailures(), FakeClock()) for client in clients))
    first, second = map(weakref.ref, clients)
    del clients

    output.renew()
    assert first() is None
    assert second() is not None

    del output
    assert second() is not None, "the worker ends its output"
