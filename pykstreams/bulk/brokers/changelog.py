"""Writes rows to topics, and does not return before each of them has been delivered.

The producer is idempotent, so a row is there once an attempt, and in order.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, TypeAlias

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import DeliveryError
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.clients.errors import LARGER_RECORDS, TOO_LARGE, ClientError, client_error
from pykstreams.runtime.clients.producer import WorkerProducer
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from pykstreams.state.interfaces.store import ChangelogRow

WriteRow: TypeAlias = Callable[[ChangelogRow, int], None]
"""(row, partition)"""

_FLUSH_S = 10.0
_AFTER_ZERO: Final = 1
"""Sent in place of the timestamp 0, which the client takes for the time of day; as workers do."""
_SHOWN_BYTES: Final = 40


class TopicOutput:
    """A topic that is written; a context manager that gives what takes a row and its partition.

    :param config: of the application; its producer settings apply.
    :param who: tells its client from others of the job.
    """

    def __init__(self, config: StreamsConfig, topic: str, who: str = "records") -> None:
        self._topic = topic
        settings = StreamsConfig({**config.originals, "producer.enable.idempotence": "true"})
        client_id = f"{config.application_id}-bootstrap-{topic}-{who}"
        self._producer = WorkerProducer.open(DefaultKafkaClientSupplier(), settings, client_id, transactional_id=None)
        self._producer.failures.handler = self._note
        self._failure: DeliveryError | None = None

    def __enter__(self) -> WriteRow:
        return self._write

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._producer.raw.purge()
            return
        while self._producer.flush(_FLUSH_S):  # what is not delivered in time fails
            self._check()
        self._check()

    def _write(self, row: ChangelogRow, partition: int) -> None:
        key, value, timestamp, headers = row
        produce = self._producer.raw.produce
        while True:
            try:
                produce(
                    self._topic,
                    value,
                    key,
                    partition,
                    timestamp=timestamp or _AFTER_ZERO,
                    headers=list(headers) if headers else None,
                )
                return
            except BufferError:
                self._producer.raw.poll(1.0)
                self._check()
            except Exception as exception:
                error = client_error(exception)
                if error is None:
                    raise
                raise self._undelivered(error, key, value) from exception

    def _note(self, error: ClientError | None, message: RecordMessage) -> None:
        if error is not None and self._failure is None:
            self._failure = self._undelivered(error, message.key(), message.value())

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _undelivered(self, error: ClientError, key: bytes | None, value: bytes | None) -> DeliveryError:
        name, size = error.name(), len(key or b"") + len(value or b"")
        cure = LARGER_RECORDS if name in TOO_LARGE else "look after the brokers"
        return DeliveryError(
            f"a row for topic {self._topic!r} was not delivered: {error.str()} ({name}); it has {size} bytes, its key "
            f"begins with {(key or b'')[:_SHOWN_BYTES]!r}: {cure}, delete the topic and run the job again",
            name=name,
        )


class ChangelogOutput:
    """A partition of a changelog that is written; a context manager that gives what takes a row."""

    def __init__(self, config: StreamsConfig, topic: str, partition: int) -> None:
        self._partition = partition
        self._output = TopicOutput(config, topic, str(partition))

    def __enter__(self) -> Callable[[ChangelogRow], None]:
        write, partition = self._output.__enter__(), self._partition
        return lambda row: write(row, partition)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._output.__exit__(kind, error, trace)
