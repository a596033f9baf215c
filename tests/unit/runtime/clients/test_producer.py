"""The producer of a worker: every call is bounded, and one that leaves it in doubt breaks it."""

from __future__ import annotations

import gc
import logging
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import ClusterMetadata

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError, ClusterUnavailableError, ConfigError, StreamsError, TaskMigratedError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.settings.clients import TRANSACTION_TIMEOUT_MS
from pykstreams.runtime.clients import bounded, committed_offsets
from pykstreams.runtime.clients import producer as module
from pykstreams.runtime.clients.producer import DeliveryFailures, WorkerProducer
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from tests.unit.runtime.cluster_fakes import FakeClock

PATIENCE_S = 60.0
OFFSETS = {TopicPartition("orders", 0): (5, "")}


def failure(code: int, *, fatal: bool = False, retriable: bool = False, abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, None, fatal, retriable, abort))


class FakeProducerClient(Producer):
    """A client whose next answers a test chooses; without one a call succeeds.

    It is a ``Producer`` for the types only: nothing of it is made.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[Exception | Callable[[], None]]] = {}
        self.calls: list[str] = []
        self.undelivered = 0
        self.offsets_within_s = 0.0
        """How long the last call for offsets may have taken."""
        self.ends_within_s: list[float] = []
        """How long each call may have taken that commits or aborts."""

    def _answer(self, call: str) -> int:
        self.calls.append(call)
        if answers := self.answers.get(call):
            answer = answers.pop(0)
            try:
                if isinstance(answer, Exception):
                    raise answer
                answer()
            finally:
                del answer  # its traceback would hold it by this name, and the client with it
        return 0

    def produce(self, *args: Any, **options: Any) -> None:
        self._answer("produce")

    def poll(self, timeout: float = -1) -> int:
        return self._answer("poll")

    def flush(self, timeout: float = -1) -> int:
        self._answer("flush")
        return self.undelivered

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        assert timeout > 0
        self._answer("list topics")
        return ClusterMetadata()

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Takes ``blocking`` the wrong way round, as the client does (2.16.1)."""
        assert in_queue and in_flight
        self._answer("purge" if blocking else "purge and wait")

    def close(self) -> bool:
        self._answer("close")
        return True

    def init_transactions(self, timeout: float = -1) -> None:
        self._answer("init")

    def begin_transaction(self) -> None:
        self._answer("begin")

    def send_to_transaction(self, offsets: Any, metadata: Any, timeout: float) -> None:
        """As ``committed_offsets`` does, past the client's own methods."""
        self.offsets_within_s = timeout
        self._answer("offsets")

    def commit_transaction(self, timeout: float = -1) -> None:
        self.ends_within_s.append(timeout)
        self._answer("commit")

    def abort_transaction(self, timeout: float = -1) -> None:
        self.ends_within_s.append(timeout)
        self._answer("abort")


class ProducerBench:
    """A worker's producer over a fake client, with a clock to set."""

    def __init__(self) -> None:
        self.client = FakeProducerClient()
        self.clock = FakeClock()
        self.producer = WorkerProducer(self.client, DeliveryFailures(), self.clock)

    def offsets_time_out(self) -> None:
        """An answer to offsets that does not come in time."""
        self.clock.advance(self.client.offsets_within_s)
        raise failure(KafkaError._TIMED_OUT, retriable=True)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ProducerBench:
    monkeypatch.setattr(committed_offsets, "send_to_transaction", FakeProducerClient.send_to_transaction)
    return ProducerBench()


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A call that does not come back before the end of the test."""
    over = threading.Event()
    monkeypatch.setattr(bounded, "GRACE_S", 0.0)
    for bound in ("_COMMIT_S", "_OFFSETS_S", "_LAST_STEP_S", "_ABORT_S"):
        monkeypatch.setattr(module, bound, 0.01)
    yield over.wait  # type: ignore[misc]
    over.set()


def test_transaction_is_committed_with_its_offsets(bench: ProducerBench) -> None:
    bench.producer.start_transactions(1)
    bench.producer.begin()
    bench.producer.commit(OFFSETS, b"member")

    assert bench.client.calls == ["init", "begin", "offsets", "commit"]


def test_coordinator_that_is_away_is_asked_again_later(bench: ProducerBench) -> None:
    bench.client.answers["init"] = [failure(KafkaError._TIMED_OUT, retriable=True)]

    with pytest.raises(ClusterUnavailableError, match="starting transactions failed"):
        bench.producer.start_transactions(1)
    bench.producer.start_transactions(1)
    bench.producer.begin()
    assert bench.producer.abort()


def test_transactional_id_that_is_refused_ends_the_application(bench: ProducerBench) -> None:
    bench.client.answers["init"] = [failure(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, fatal=True)]

    with pytest.raises(ClusterError) as raised:
        bench.producer.start_transactions(1)

    assert not isinstance(raised.value, ClusterUnavailableError)


def test_transactions_that_are_longer_than_the_brokers_allow_end_the_application_and_the_setting_is_named(
    bench: ProducerBench,
) -> None:
    bench.client.answers["init"] = [failure(KafkaError.INVALID_TRANSACTION_TIMEOUT, fatal=True)]

    with pytest.raises(ConfigError, match=r"producer\.transaction\.timeout\.ms .* transaction\.max\.timeout\.ms"):
        bench.producer.start_transactions(1)


def test_step_that_may_pass_is_tried_again(bench: ProducerBench) -> None:
    bench.client.answers["commit"] = [failure(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, retriable=True)]

    bench.producer.commit(OFFSETS, b"member")

    assert bench.client.calls == ["offsets", "commit", "commit"]


def test_step_that_does_not_pass_in_time_breaks_the_producer(bench: ProducerBench) -> None:
    def takes_long() -> None:
        bench.clock.advance(11)
        raise failure(KafkaError._TIMED_OUT, retriable=True)

    bench.client.answers["commit"] = [takes_long]

    with pytest.raises(TaskMigratedError, match="committing the transaction failed"):
        bench.producer.commit({}, b"member")
    assert not bench.producer.abort()
    assert bench.client.calls == ["commit"]


@pytest.mark.parametrize("step", ["offsets", "commit"])
def test_call_that_hangs_is_left_behind_and_breaks_the_producer(
    bench: ProducerBench, hanging: Callable[[], None], step: str
) -> None:
    bench.client.answers[step] = [hanging]

    with pytest.raises(TaskMigratedError, match="no answer within"):
        bench.producer.commit(OFFSETS, b"member")

    assert not bench.producer.abort()


def test_call_for_offsets_that_hangs_is_found_out_when_most_of_the_transaction_is_left(bench: ProducerBench) -> None:
    """librdkafka may wait without end for a broker that was away, and the brokers roll it back after 10 s."""
    bench.producer.commit(OFFSETS, b"member")

    assert bench.client.offsets_within_s + bounded.GRACE_S <= 0.3 * TRANSACTION_TIMEOUT_MS / 1000


def test_offsets_for_a_coordinator_that_is_away_for_a_while_are_sent_when_it_is_back(bench: ProducerBench) -> None:
    bench.client.answers["offsets"] = [bench.offsets_time_out] * 8

    bench.producer.commit(OFFSETS, b"member")

    assert bench.client.calls == ["offsets"] * 9 + ["commit"]


def test_steps_of_a_commit_take_no_longer_together_than_brokers_leave_the_transaction_open(
    bench: ProducerBench,
) -> None:
    bench.client.answers["offsets"] = [bench.offsets_time_out] * 8

    bench.producer.commit(OFFSETS, b"member")

    assert [TRANSACTION_TIMEOUT_MS / 1000 - 8] == bench.client.ends_within_s


def test_last_step_of_a_commit_has_a_second_at_least(bench: ProducerBench) -> None:
    bench.client.answers["offsets"] = [lambda: bench.clock.advance(30)]

    bench.producer.commit(OFFSETS, b"member")

    assert [1] == bench.client.ends_within_s


def test_coordinator_that_does_not_answer_a_commit_is_not_waited_for_again_to_abort(bench: ProducerBench) -> None:
    """The client fails a transaction whose commit was not answered in time; another producer aborts it sooner."""
    bench.client.answers["commit"] = [failure(KafkaError._TIMED_OUT, abort=True)]

    with pytest.raises(TaskMigratedError, match="committing the transaction failed"):
        bench.producer.commit(OFFSETS, b"member")

    assert not bench.producer.abort()
    assert bench.client.calls == ["offsets", "commit"]


def test_coordinator_that_stops_to_answer_amid_a_commit_keeps_its_worker_for_no_longer_than_the_transaction_lasts(
    bench: ProducerBench,
) -> None:
    """One of several brokers is frozen: another one coordinates after 9 s, which a new producer finds at once."""

    def commit_times_out() -> None:
        bench.clock.advance(bench.client.ends_within_s[-1])
        raise failure(KafkaError._TIMED_OUT, abort=True)

    def abort_times_out() -> None:
        bench.clock.advance(bench.client.ends_within_s[-1])
        raise failure(KafkaError._TIMED_OUT, retriable=True)

    bench.client.answers |= {
        "offsets": [bench.offsets_time_out] * 7,
        "commit": [commit_times_out],
        "abort": [abort_times_out],
    }
    bench.producer.begin()
    began = bench.clock.monotonic()
    with pytest.raises(TaskMigratedError):
        bench.producer.commit(OFFSETS, b"member")

    assert not bench.producer.abort()
    assert bench.clock.monotonic() - began <= TRANSACTION_TIMEOUT_MS / 1000


def test_abort_is_not_waited_for_longer_than_another_producer_takes(bench: ProducerBench) -> None:
    bench.producer.begin()

    assert bench.producer.abort()
    assert bench.client.ends_within_s[0] + bounded.GRACE_S <= 4


def test_start_that_hangs_breaks_the_producer_and_is_told_as_a_cluster_that_does_not_answer(
    bench: ProducerBench, hanging: Callable[[], None]
) -> None:
    """Another producer may hang as well, so that it is for the caller to give up in the end."""
    bench.client.answers["init"] = [hanging]

    with pytest.raises(ClusterUnavailableError, match="starting transactions failed: no answer within"):
        bench.producer.start_transactions(0.01)

    assert bench.producer.broken
    assert not bench.producer.abort()


def test_transaction_that_has_failed_is_given_up_when_its_records_stay_undelivered(bench: ProducerBench) -> None:
    """The client delivers no more of it, and tells only who asks for its state."""
    bench.producer.begin()
    bench.client.undelivered = 3
    bench.client.answers["begin"] = [failure(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, abort=True)]

    with pytest.raises(TaskMigratedError, match="delivering the records of a transaction failed"):
        bench.producer.flush(2)
    assert not bench.producer.broken
    assert bench.producer.abort()


def test_records_of_a_transaction_that_has_not_failed_are_waited_for(bench: ProducerBench) -> None:
    bench.producer.begin()
    bench.client.undelivered = 3
    bench.client.answers["begin"] = [failure(KafkaError._STATE)]

    assert bench.producer.flush(2) == 3


@pytest.mark.parametrize("ends", [lambda producer: producer.commit({}, b"member"), lambda producer: producer.abort()])
def test_no_transaction_is_asked_for_where_none_is_open(
    bench: ProducerBench, ends: Callable[[WorkerProducer], object]
) -> None:
    bench.producer.begin()
    ends(bench.producer)
    bench.client.undelivered = 3
    bench.producer.flush(2)

    assert bench.client.calls.count("begin") == 1


def test_transaction_that_must_be_aborted_leaves_the_producer_as_it_is(bench: ProducerBench) -> None:
    bench.client.answers["offsets"] = [failure(KafkaError.UNKNOWN_MEMBER_ID, abort=True)]

    with pytest.raises(TaskMigratedError, match="sending offsets to the transaction failed"):
        bench.producer.commit(OFFSETS, b"member")

    assert bench.producer.abort()
    assert bench.client.calls == ["offsets", "abort"]


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError._CONFLICT, KafkaError._FENCED])
def test_after_an_abort_whose_end_is_unknown_the_producer_is_of_no_use(
    bench: ProducerBench, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    bench.client.answers["abort"] = [failure(code, retriable=code == KafkaError._TIMED_OUT)]

    assert not bench.producer.abort()
    assert not bench.producer.abort()
    assert bench.client.calls == ["abort"]
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
    bench: ProducerBench, call: str, error: Exception
) -> None:
    bench.client.answers[call] = [error]

    with pytest.raises(TaskMigratedError, match="delivering records failed"):
        getattr(bench.producer, call)(0)

    assert not bench.producer.abort()


def test_transaction_that_cannot_begin_breaks_the_producer(bench: ProducerBench) -> None:
    bench.client.answers["begin"] = [failure(KafkaError._STATE)]

    with pytest.raises(TaskMigratedError, match="beginning a transaction failed"):
        bench.producer.begin()

    assert not bench.producer.abort()


def test_discarded_producer_drops_what_it_holds(bench: ProducerBench) -> None:
    bench.producer.discard()

    assert bench.client.calls == ["purge"]
    assert not bench.producer.abort()


def test_producer_that_is_closed_drops_what_it_holds_and_ends_its_client(bench: ProducerBench) -> None:
    bench.producer.begin()
    bench.producer.commit({}, b"member")
    bench.producer.close()

    assert bench.client.calls == ["begin", "commit", "purge", "close"]


def test_client_with_an_open_transaction_is_not_closed(bench: ProducerBench) -> None:
    """It would abort the transaction, and wait for its brokers without end."""
    bench.producer.begin()
    bench.producer.close()

    assert bench.client.calls == ["begin", "purge"]


def test_client_in_doubt_is_not_closed(bench: ProducerBench) -> None:
    bench.client.answers["init"] = [failure(KafkaError._FENCED)]
    with suppress(StreamsError):
        bench.producer.start_transactions(1)
    bench.producer.close()

    assert bench.client.calls == ["init", "purge"]


@pytest.mark.parametrize("drop", [WorkerProducer.drop_undelivered, WorkerProducer.discard])
def test_threads_of_the_client_are_not_waited_for_when_they_drop_records(
    drop: Callable[[WorkerProducer], object],
) -> None:
    """One of them may hang, and the whole process stands still while it is waited for."""
    said: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.extend(re.findall("Purging queues with flags (.*)", record.getMessage()))

    logger = logging.Logger("client")
    logger.addHandler(Lines())
    settings = {
        "bootstrap.servers": "127.0.0.1:1",
        "metadata.recovery.strategy": "none",  # by default a broker may be replaced just then, which says nothing
        "debug": "queue",
        "logger": logger,
    }
    client = Producer(settings)
    drop(WorkerProducer(client, DeliveryFailures(), FakeClock()))
    for _ in range(int(PATIENCE_S / 0.1)):
        if said:
            break
        client.poll(0.1)

    assert set(said) == {"queue,inflight,non-blocking"}


def test_undelivered_records_are_dropped_and_none_is_reported(bench: ProducerBench) -> None:
    reports: list[str] = []
    bench.producer.failures.handler = lambda error, message: reports.append(error.name())
    bench.client.answers["flush"] = [lambda: bench.producer.failures(KafkaError(KafkaError._PURGE_QUEUE), Message())]

    assert bench.producer.drop_undelivered()

    assert bench.client.calls == ["purge", "flush"]
    assert reports == []
    bench.producer.failures(KafkaError(KafkaError._MSG_TIMED_OUT), Message())
    assert reports == ["_MSG_TIMED_OUT"]


def test_producer_that_keeps_records_when_it_has_dropped_them_must_be_made_anew(bench: ProducerBench) -> None:
    bench.client.undelivered = 1

    assert not bench.producer.drop_undelivered()


def test_producer_with_a_fatal_error_must_be_made_anew(bench: ProducerBench) -> None:
    bench.client.answers["flush"] = [failure(KafkaError._FATAL, fatal=True)]

    assert not bench.producer.drop_undelivered()
    assert bench.producer.broken


def test_leaders_are_looked_up_while_records_are_not_delivered(bench: ProducerBench) -> None:
    bench.client.undelivered = 3
    bench.client.answers["list topics"] = [failure(KafkaError._TRANSPORT, retriable=True)]

    assert bench.producer.flush(1) == 3
    bench.client.undelivered = 0
    bench.clock.advance(60)
    assert bench.producer.flush(1) == 0

    assert bench.client.calls == ["flush", "list topics", "flush"]


def test_leaders_are_looked_up_at_most_every_few_seconds(bench: ProducerBench) -> None:
    bench.client.undelivered = 3

    for _ in range(3):
        bench.producer.flush(1)
        bench.clock.advance(2)
    bench.clock.advance(2)
    bench.producer.flush(1)

    assert bench.client.calls.count("list topics") == 2


@pytest.mark.parametrize(("record_s", "given_ms"), [(4.0, 4000), (None, 120_000)])
def test_record_waits_in_the_producer_no_longer_than_it_may(record_s: float | None, given_ms: int) -> None:
    given: list[Mapping[str, object]] = []

    class Supplier(DefaultKafkaClientSupplier):
        def get_producer(self, config: Mapping[str, object]) -> Producer:
            given.append(config)
            return FakeProducerClient()

    config = StreamsConfig({"bootstrap.servers": "localhost:9092", "application.id": "app"})
    WorkerProducer.open(Supplier(), config, "worker", transactional_id=None, record_s=record_s)

    assert [one["delivery.timeout.ms"] for one in given] == [given_ms]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Cycles of garbage stay: a worker makes few, so that they are looked for after hours."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    ("call", "act"),
    [
        ("init", lambda producer: producer.start_transactions(1)),
        ("begin", lambda producer: producer.begin()),
        ("offsets", lambda producer: producer.commit(OFFSETS, b"member")),
        ("commit", lambda producer: producer.commit(OFFSETS, b"member")),
        ("abort", lambda producer: producer.abort()),
        ("flush", lambda producer: producer.flush(1)),
    ],
)
@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError._TRANSPORT, KafkaError.INVALID_TRANSACTION_TIMEOUT])
def test_client_of_a_producer_that_failed_is_gone_with_it(
    bench: ProducerBench, call: str, act: Callable[[WorkerProducer], object], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_COMMIT_S", 0.0)
    client, producer, others = weakref.ref(bench.client), bench.producer, set(threading.enumerate())
    bench.client.answers[call] = [failure(code) for _ in range(3)]
    with suppress(StreamsError):
        act(producer)
    producer.discard()
    for thread in set(threading.enumerate()) - others:
        thread.join(PATIENCE_S)
    del producer, bench.client, bench.producer

    assert client() is None
