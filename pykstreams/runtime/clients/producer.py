"""The producer of a worker: deliveries, transactions.

Invariant: no call waits for longer than its time-out, and what leaves this module is one of our errors.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.errors import ClusterUnavailableError, ConfigError, StreamsError, TaskMigratedError
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.metrics.built_in.clients import PRODUCER
from pykstreams.runtime.clients import committed_offsets
from pykstreams.runtime.clients.bounded import BoundedCalls, HangingCallError, close_in_time
from pykstreams.runtime.clients.client_statistics import statistics_of
from pykstreams.runtime.clients.errors import cluster_error, is_passing, kafka_error, transaction_error
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.clients.served import served
from pykstreams.runtime.clients.supplier import LIBRDKAFKA_LOG, KafkaClientSupplier

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

log = logging.getLogger(__name__)

_COMMIT_S = 10.0
"""How long the steps of a commit are waited for in all: as long as brokers leave a transaction open by default. A
worker serves nobody meanwhile."""

_OFFSETS_S = 1.0
"""How long one call for its offsets waits; the next one goes on with them. After the restart of the coordinator one
waits without end, whatever it is told: so that is found out soon (decision 0051)."""

_LAST_STEP_S = 1.0
"""How long the last step is waited for at least, however long the offsets have taken."""

_ABORT_S = 2.0
"""How long is waited until a transaction is aborted. Otherwise another producer does it when it starts, which takes a
moment where the coordinator answers (decision 0051)."""

_DROP_S = 1.0
"""How long is waited until the client has nothing any more of what is dropped."""

_ONE_TRANSACTION_MS = 60_000

_LOOK_UP_S = 1.0
"""How long is waited for an answer to who leads which partition."""

_LOOK_UP_INTERVAL_S = 5.0

_TRANSACTIONS_TOO_LONG: Final = "INVALID_TRANSACTION_TIMEOUT"


def one_transaction_ms(config: StreamsConfig) -> int:
    """How long a transaction beside those of the worker may take: a minute, or what the user has set for all."""
    return int(str(config.originals.get("producer.transaction.timeout.ms", _ONE_TRANSACTION_MS)))


class DeliveryFailures:
    """Receives reports of failed deliveries, inside ``poll`` and ``flush``, and hands them to ``handler``.

    The producer must be made with it, and who handles them needs the producer first: so the handler comes later.
    """

    def __init__(self) -> None:
        self.handler: Callable[[Any, Any], None] | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if self.handler is not None:
            self.handler(error, message)


class WorkerProducer:
    """The producer of a worker.

    Once a call has left it in doubt it is *broken*: nothing is aborted with it, and another must be made.
    """

    def __init__(self, producer: Producer, failures: DeliveryFailures, clock: Clock) -> None:
        self.raw = producer
        self.produce = producer.produce
        """The client's own method: records are sent without a call in between."""
        self.failures = failures
        self._clock = clock
        self._calls: BoundedCalls | None = None
        self._broken = False
        self._in_transaction = False
        self._look_up_at = clock.monotonic()

    @classmethod
    def open(
        cls,
        supplier: KafkaClientSupplier,
        config: StreamsConfig,
        client_id: str,
        *,
        transactional_id: str | None,
        record_s: float | None = None,
        metrics: StreamsMetrics | None = None,
    ) -> WorkerProducer:
        """Makes the producer.

        :param record_s: how long a record may wait to be sent and taken, in place of ``delivery.timeout.ms``.
        """
        failures = DeliveryFailures()
        settings: dict[str, object] = {
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 262_144,
            **config.get_producer_configs(client_id),
            "on_delivery": failures,
            "logger": LIBRDKAFKA_LOG,
        }
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
        if record_s is not None:
            settings["delivery.timeout.ms"] = int(record_s * 1000)
        settings |= statistics_of(settings, metrics, PRODUCER)
        return cls(supplier.get_producer(settings), failures, SystemClock())

    @classmethod
    def open_for_one_transaction(
        cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str, *, transactional_id: str
    ) -> WorkerProducer:
        """Makes a producer beside that of the worker, for a transaction now and then, whatever the guarantee is.

        Its transactions may take as long as ``one_transaction_ms`` says.
        """
        failures = DeliveryFailures()
        settings = config.get_producer_configs(client_id)
        timeout = one_transaction_ms(config)
        settings |= {
            "transaction.timeout.ms": timeout,
            "delivery.timeout.ms": timeout,
            "socket.timeout.ms": min(timeout, _ONE_TRANSACTION_MS),
            "enable.idempotence": True,
            "acks": "all",
            "transactional.id": transactional_id,
            "on_delivery": failures,
            "logger": LIBRDKAFKA_LOG,
        }
        return cls(supplier.get_producer(settings), failures, SystemClock())

    def poll(self, timeout_s: float) -> None:
        """Runs the callbacks of deliveries that have failed; ``TaskMigratedError`` when this producer is broken."""
        self._serve(lambda: self.raw.poll(timeout_s))

    def flush(self, timeout_s: float) -> int:
        """Waits until each record has been delivered or has failed, and returns how many have not in this time.

        Those may wait for a leader that the client takes to be away: it asks the brokers again who leads them.
        ``TaskMigratedError`` where they wait for nothing, since their transaction has failed: then call ``abort``.
        """
        left = self._serve(lambda: self.raw.flush(timeout_s))
        if left and self._in_transaction:
            self._raise_what_failed_the_transaction()
        if left and self._clock.monotonic() >= self._look_up_at:
            self._look_up_leaders()
            self._look_up_at = self._clock.monotonic() + _LOOK_UP_INTERVAL_S
        return left

    @property
    def undelivered(self) -> int:
        """How many records wait, or are on their way."""
        return len(self.raw)

    @property
    def broken(self) -> bool:
        """Whether it can do nothing any more, and another one must be made."""
        return self._broken

    def start_transactions(self, timeout_s: float) -> None:
        """Fences an earlier producer of the same transactional id, and settles the transaction that it left open.

        ``ClusterUnavailableError`` when the cluster does not answer: call it again, with another producer if this one
        is broken. ``ConfigError`` when it takes no transactions as long as these.
        """
        doing = "starting transactions"
        try:
            self._bounded(self.raw.init_transactions, timeout_s)
        except KafkaException as exception:
            if is_passing(exception):
                raise cluster_error(doing, exception) from exception
            if kafka_error(exception).name() == _TRANSACTIONS_TOO_LONG:
                raise ConfigError(str(self._broken_by(doing, exception))) from exception
            raise self._broken_by(doing, exception) from exception
        except HangingCallError as hanging:
            self._broken = True
            raise ClusterUnavailableError(f"{doing} failed: {hanging}") from hanging

    def begin(self) -> None:
        """Starts a transaction; what is sent from now on counts when it is committed."""
        try:
            self.raw.begin_transaction()
        except KafkaException as exception:
            raise self._broken_by("beginning a transaction", exception) from exception
        self._in_transaction = True

    def commit(self, offsets: Offsets, group_metadata: bytes) -> None:
        """Commits what was sent together with offsets, or raises ``TaskMigratedError``: then call ``abort``.

        It may have been committed nevertheless, when the answer of the cluster did not come. Then this producer is
        broken; the next one settles the matter before it starts, and the offsets that the group has show the rest.
        """
        deadline = self._clock.monotonic() + _COMMIT_S
        if offsets:
            self._transact(
                "sending offsets to the transaction",
                lambda timeout_s: committed_offsets.send_to_transaction(self.raw, offsets, group_metadata, timeout_s),
                _OFFSETS_S,
                deadline,
            )
        self._transact("committing the transaction", self.raw.commit_transaction, _COMMIT_S, deadline)
        self._in_transaction = False

    def abort(self) -> bool:
        """Drops what was sent since ``begin``; false when this producer must be made anew, which aborts it, too."""
        if self._broken:
            return False
        try:
            self._bounded(self.raw.abort_transaction, _ABORT_S)
        except (KafkaException, HangingCallError) as exception:
            # whether it was aborted is unknown; another call would be refused as long as this one may still end
            log.warning("%s; the producer is made anew", self._broken_by("aborting the transaction", exception))
            return False
        self._in_transaction = False
        return True

    def drop_undelivered(self) -> bool:
        """Drops what was not delivered, and reports none of it; false when this producer must be made anew.

        Requests that are on their way may still be taken, but not behind a record that is sent from now on: the client
        goes on with a higher epoch of its producer id, and brokers refuse the lower one then (decision 0050).

        A thread of the client that hangs, in a look-up of a name for instance, drops when it goes on: records that are
        sent until then, too, of which ``failures`` are told.
        """
        if self._broken:
            return False
        handler, self.failures.handler = self.failures.handler, None
        try:
            self._purge()
            return not served(lambda: self.raw.flush(_DROP_S))
        except KafkaException as exception:
            log.warning("%s; the producer is made anew", self._broken_by("dropping undelivered records", exception))
            return False
        finally:
            self.failures.handler = handler

    def discard(self) -> None:
        """Drops what was not delivered, and reports none of it; waits for nothing.

        The client has no way to be closed that waits for nothing, either: it ends with its last user.
        """
        self._broken = True
        self.failures.handler = None
        self._purge()
        if self._calls is not None:
            self._calls.end()

    def close(self) -> None:
        """Ends the client with its threads and connections, and drops what was not delivered.

        One in doubt, or with a transaction, ends with its last user: closing it would abort the transaction, and wait
        for brokers without end.
        """
        in_doubt = self._broken or self._in_transaction
        self.discard()
        if not in_doubt:
            close_in_time("that sends records", self.raw.close)

    def _purge(self) -> None:
        """Has the threads of the client drop what they have, and waits for none of them.

        confluent-kafka takes ``blocking`` the wrong way round (2.16.1). With ``False`` the whole process stands still
        until each thread has done it, since the call keeps the interpreter's lock.
        """
        self.raw.purge(blocking=True)

    def _raise_what_failed_the_transaction(self) -> None:
        """Asks for a second transaction: refused, with what has failed the first one if that must be aborted."""
        try:
            self.raw.begin_transaction()
        except KafkaException as exception:
            if kafka_error(exception).txn_requires_abort():
                raise transaction_error("delivering the records of a transaction", exception) from exception

    def _look_up_leaders(self) -> None:
        try:
            served(lambda: self.raw.list_topics(timeout=_LOOK_UP_S))
        except KafkaException as exception:
            log.info("who leads the partitions was not found out yet: %s", kafka_error(exception).str())

    def _bounded(self, act: Callable[[float], object], timeout_s: float) -> None:
        if self._calls is None:
            self._calls = BoundedCalls("producer")
        self._calls.call(lambda timeout_s: served(lambda: act(timeout_s)), timeout_s)

    def _transact(self, doing: str, act: Callable[[float], object], attempt_s: float, deadline: float) -> None:
        """Makes one step of a transaction; what may pass is tried again until ``deadline``.

        A commit that was not answered in time has failed its transaction in the client. Its coordinator is not asked
        to abort it: that would be waited for once more.
        """
        while True:
            left_s = max(_LAST_STEP_S, deadline - self._clock.monotonic())
            try:
                self._bounded(act, min(attempt_s, left_s))
                return
            except HangingCallError as error:
                raise self._broken_by(doing, error) from error
            except KafkaException as exception:
                found = kafka_error(exception)
                failed = found.txn_requires_abort()
                if failed and not found.fatal() and found.code() != KafkaError._TIMED_OUT:
                    raise transaction_error(doing, exception) from exception
                if failed or not is_passing(exception) or self._clock.monotonic() > deadline:
                    raise self._broken_by(doing, exception) from exception
                log.info("%s did not succeed yet: %s (%s); trying again", doing, found.str(), found.name())

    def _serve(self, act: Callable[[], int]) -> int:
        try:
            return served(act)
        except KafkaException as exception:
            raise self._broken_by("delivering records", exception) from exception

    def _broken_by(self, doing: str, exception: Exception) -> StreamsError:
        self._broken = True
        if isinstance(exception, KafkaException):
            return transaction_error(doing, exception)
        return TaskMigratedError(f"{doing} failed: {exception}")
