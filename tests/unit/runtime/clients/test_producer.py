"""The producer of a worker: every call is bounded, and one that leaves it in doubt breaks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from pykstreams.core.errors import ClusterError, ClusterUnavailableError, TaskMigratedError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients import bounded, committed_offsets
from pykstreams.runtime.clients import producer as module
from pykstreams.runtime.clients.producer import DeliveryFailures, WorkerProducer
from tests.unit.runtime.cluster_fakes import FakeClock

OFFSETS = {TopicPartition("orders", 0): (5, "")}


def failure(code: int, *, fatal: bool = False, retriable: bool = False, abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, None, fatal, retriable, abort))


class Client:
    """A client whose next answers a test chooses; without one a call succeeds."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Exception | Callable[[], None]]] = {}
        self.calls: list[str] = []

    def _answer(self, call: str) -> int:
        self.calls.append(call)
        if answers := self.answers.get(call):
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            answer()
        return 0

    def produce(self, *args: Any, **options: Any) -> None:
        self._answer("produce")

    def poll(self, timeout: float) -> int:
        return self._answer("poll")

    def flush(self, timeout: float) -> int:
        return self._answer("flush")

    def purge(self, *, blocking: bool) -> None:
        assert not blocking
        self._answer("purge")

    def init_transactions(self, timeout: float) -> None:
        self._answer("init")

    def begin_transaction(self) -> None:
        self._answer("begin")

    def send_to_transaction(self, offsets: Any, metadata: Any, timeout: float) -> None:
        """As ``committed_offsets`` does, past the client's own methods."""
        self._answer("offsets")

    def commit_transaction(self, timeout: float) -> None:
        self._answer("commit")

    def abort_transaction(self, timeout: float) -> None:
        self._answer("abort")


class World:
    def __init__(self) -> None:
        self.client = Client()
        self.clock = FakeClock()
        self.producer = WorkerProducer(self.client, DeliveryFailures(), self.clock)  # type: ignore[arg-type]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(committed_offsets, "send_to_transaction", Client.send_to_transaction)
    return World()


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A call that does not come back before the end of the test."""
    over = threading.Event()
    monkeypatch.setattr(bounded, "GRACE_S", 0.0)
    monkeypatch.setattr(module, "_CALL_S", 0.01)
    yield over.wait  # type: ignore[misc]
    over.set()


def test_transaction_is_committed_with_its_offsets(world: World) -> None:
    world.producer.start_transactions(1)
    world.producer.begin()
    world.producer.commit(OFFSETS, b"member")

    assert world.client.calls == ["init", "begin", "offsets", "commit"]


def test_coordinator_that_is_away_is_asked_again_later(world: World) -> None:
    world.client.answers["init"] = [failure(KafkaError._TIMED_OUT, retriable=True)]

    with pytest.raises(ClusterUnavailableError, match="starting transactions failed"):
        world.producer.start_transactions(1)
    world.producer.start_transactions(1)
    world.producer.begin()
    assert world.producer.abort()


def test_transactional_id_that_is_refused_ends_the_application(world: World) -> None:
    world.client.answers["init"] = [failure(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, fatal=True)]

    with pytest.raises(ClusterError) as raised:
        world.producer.start_transactions(1)

    assert not isinstance(raised.value, ClusterUnavailableError)


def test_step_that_may_pass_is_tried_again(world: World) -> None:
    world.client.answers["commit"] = [failure(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, retriable=True)]

    world.producer.commit(OFFSETS, b"member")

    assert world.client.calls == ["offsets", "commit", "commit"]


def test_step_that_does_not_pass_in_time_breaks_the_producer(world: World) -> None:
    def takes_long() -> None:
        world.clock.advance(11)
        raise failure(KafkaError._TIMED_OUT, retriable=True)

    world.client.answers["commit"] = [takes_long]

    with pytest.raises(TaskMigratedError, match="committing the transaction failed"):
        world.producer.commit({}, b"member")
    assert not world.producer.abort()
    assert world.client.calls == ["commit"]


@pytest.mark.parametrize("step", ["init", "offsets", "commit"])
def test_call_that_hangs_is_left_behind_and_breaks_the_producer(
    world: World, hanging: Callable[[], None], step: str
) -> None:
    world.client.answers[step] = [hanging]

    with pytest.raises(TaskMigratedError, match="no answer within"):
        if step == "init":
            world.producer.start_transactions(0.01)
        world.producer.commit(OFFSETS, b"member")

    assert not world.producer.abort()


def test_transaction_that_must_be_aborted_leaves_the_producer_as_it_is(world: World) -> None:
    world.client.answers["offsets"] = [failure(KafkaError.UNKNOWN_MEMBER_ID, abort=True)]

    with pytest.raises(TaskMigratedError, match="sending offsets to the transaction failed"):
        world.producer.commit(OFFSETS, b"member")

    assert world.producer.abort()
    assert world.client.calls == ["offsets", "abort"]


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError._CONFLICT, KafkaError._FENCED])
def test_after_an_abort_whose_end_is_unknown_the_producer_is_of_no_use(
    world: World, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    world.client.answers["abort"] = [failure(code, retriable=code == KafkaError._TIMED_OUT)]

    assert not world.producer.abort()
    assert not world.producer.abort()
    assert world.client.calls == ["abort"]
    assert "aborting the transaction failed" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        failure(KafkaError._FATAL, fatal=True),
        SystemError("<method 'flush' of 'cimpl.Producer' objects> returned NULL without setting an exception"),
    ],
)
@pytest.mark.parametrize("call", ["poll", "flush"])
def test_fatal_error_that_comes_while_callbacks_are_served_breaks_the_producer(
    world: World, call: str, error: Exception
) -> None:
    world.client.answers[call] = [error]

    with pytest.raises(TaskMigratedError, match="delivering records failed"):
        getattr(world.producer, call)(0)

    assert not world.producer.abort()


def test_transaction_that_cannot_begin_breaks_the_producer(world: World) -> None:
    world.client.answers["begin"] = [failure(KafkaError._STATE)]

    with pytest.raises(TaskMigratedError, match="beginning a transaction failed"):
        world.producer.begin()

    assert not world.producer.abort()


def test_discarded_producer_drops_what_it_holds(world: World) -> None:
    world.producer.discard()

    assert world.client.calls == ["purge"]
    assert not world.producer.abort()
