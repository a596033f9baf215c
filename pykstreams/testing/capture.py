"""A producer that keeps what it is given; the end of the line in a test driver."""

from __future__ import annotations

from pykstreams.core.types import Headers
from pykstreams.runtime.clients.sent_records import sent_data, sent_headers, sent_time
from pykstreams.runtime.tasks.collector import ANY_PARTITION
from pykstreams.testing.records import ProducedRecord


class CapturingProducer:
    """Has the methods of ``confluent_kafka.Producer`` that the runtime calls, in the same positional order."""

    def __init__(self) -> None:
        self._records: list[ProducedRecord] = []

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = ANY_PARTITION,
        callback: object = None,
        on_delivery: object = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> None:
        """Keeps a record as a consumer gets it; without a timestamp its time is left to the producer.

        Raises ``TypeError`` for headers, keys, values and timestamps that the client refuses.
        """
        chosen = None if partition == ANY_PARTITION else partition
        time = None if timestamp is None else sent_time(timestamp)
        record = ProducedRecord(
            topic, chosen, sent_data(key, "key"), sent_data(value, "value"), time, sent_headers(headers)
        )
        self._records.append(record)

    def poll(self, timeout_s: float, /) -> int:
        """Nothing is ever under way."""
        return 0

    def flush(self, timeout_s: float, /) -> int:
        """Nothing is ever under way."""
        return 0

    def take(self) -> list[ProducedRecord]:
        """The records produced since the last call."""
        taken, self._records = self._records, []
        return taken
