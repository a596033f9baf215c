"""The producer of a worker: deliveries, transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pykstreams.core.errors import TaskMigratedError
from pykstreams.runtime.clients.errors import cluster_error, is_fencing, kafka_error
from pykstreams.runtime.clients.positions import with_metadata
from pykstreams.runtime.clients.supplier import LIBRDKAFKA_LOG, KafkaClientSupplier
from pykstreams.runtime.membership import Offsets

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

log = logging.getLogger(__name__)

_TRANSACTION_ATTEMPTS = 5
_ONE_TRANSACTION_MS = 60_000


class Failures:
    """Takes reports of failed deliveries, inside ``poll`` and ``flush``, and hands them to ``handler``.

    The producer must be made with it, and who handles them needs the producer first: so the handler comes later.
    """

    def __init__(self) -> None:
        self.handler: Callable[[Any, Any], None] | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if self.handler is not None:
            self.handler(error, message)


class WorkerProducer:
    """The producer of a worker; records are sent with ``raw``, everything else goes through here."""

    def __init__(self, producer: Producer, timeout_s: float, failures: Failures) -> None:
        self.raw = producer
        self.failures = failures
        self._timeout_s = timeout_s

    @classmethod
    def open(
        cls,
        supplier: KafkaClientSupplier,
        config: StreamsConfig,
        client_id: str,
        *,
        transactional_id: str | None,
    ) -> WorkerProducer:
        """Makes the producer."""
        failures = Failures()
        settings: dict[str, object] = {
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 262_144,
            **config.get_producer_configs(client_id),
            "on_delivery": failures,
            "logger": LIBRDKAFKA_LOG,
        }
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
        return cls(supplier.get_producer(settings), config.request_timeout_ms / 1000, failures)

    @classmethod
    def open_for_one_transaction(
        cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str, *, transactional_id: str
    ) -> WorkerProducer:
        """Makes a producer beside that of the worker, for a transaction now and then, whatever the guarantee is.

        Its transactions may take a minute, or what the user has set (``producer.transaction.timeout.ms``).
        """
        failures = Failures()
        settings = config.get_producer_configs(client_id)
        timeout = int(str(config.originals.get("producer.transaction.timeout.ms", _ONE_TRANSACTION_MS)))
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
        return cls(supplier.get_producer(settings), config.request_timeout_ms / 1000, failures)

    def flush(self) -> None:
        """Waits until each record has been delivered or has failed."""
        self.raw.flush()

    def start_transactions(self) -> None:
        """Shuts out an earlier producer of the same transactional id; ``ClusterError`` when that cannot be had."""
        self._transact("starting transactions", lambda: self.raw.init_transactions(self._timeout_s))

    def begin(self) -> None:
        """Starts a transaction; what is sent from now on counts when it is committed."""
        self._transact("beginning a transaction", self.raw.begin_transaction)

    def commit(self, offsets: Offsets, group_metadata: Any) -> None:
        """Commits what was sent together with offsets, or not at all: then ``TaskMigratedError``, and abort."""
        if offsets:
            wanted = with_metadata(offsets)
            self._transact(
                "sending offsets to the transaction",
                lambda: self.raw.send_offsets_to_transaction(wanted, group_metadata, self._timeout_s),
            )
        self._transact("committing the transaction", lambda: self.raw.commit_transaction(self._timeout_s))

    def abort(self) -> bool:
        """Drops what was sent since ``begin``; false when this producer is of no use any more."""
        try:
            self.raw.abort_transaction(self._timeout_s)
        except KafkaException as exception:
            log.warning("the transaction could not be aborted: %s", kafka_error(exception).str())
            return not kafka_error(exception).fatal()
        return True

    def _transact(self, doing: str, act: Callable[[], None]) -> None:
        for attempt in range(_TRANSACTION_ATTEMPTS):
            try:
                act()
                return
            except KafkaException as exception:
                error = kafka_error(exception)
                if error.retriable() and attempt + 1 < _TRANSACTION_ATTEMPTS:
                    log.info("%s is held up: %s; trying again", doing, error.str())
                    continue
                if error.fatal() or error.txn_requires_abort() or is_fencing(exception):
                    raise TaskMigratedError(f"{doing} failed: {error.str()} ({error.name()})") from exception
                raise cluster_error(doing, exception) from exception
