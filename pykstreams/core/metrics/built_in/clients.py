"""Metrics of the Kafka clients, from librdkafka's statistics, where ``statistics.interval.ms`` is set for a client.

That of the last poll is the worker's own, and always there.
"""

from __future__ import annotations

from typing import Final

from pykstreams.core.metrics.specs import GaugeSpec, Spec

CONSUMER_GROUP: Final = "consumer-metrics"
FETCH_GROUP: Final = "consumer-fetch-manager-metrics"
PRODUCER_GROUP: Final = "producer-metrics"
_TAGS: Final = ("thread-id", "client-id")

_OF_CONNECTIONS: Final = {
    "connection-count": "The number of brokers that the client is connected to",
    "incoming-byte-total": "The bytes read from all brokers",
    "outgoing-byte-total": "The bytes sent to all brokers",
    "request-total": "The number of requests sent",
    "response-total": "The number of responses received",
    "request-latency-avg": "The average time from a request to its response, in ms, over all brokers",
}


def _gauges(group: str, found: dict[str, str]) -> dict[str, GaugeSpec]:
    return {name: GaugeSpec(group, _TAGS, name, text) for name, text in found.items()}


CONSUMER: Final = _gauges(CONSUMER_GROUP, _OF_CONNECTIONS)
LAST_POLL: Final = GaugeSpec(
    CONSUMER_GROUP,
    _TAGS,
    "last-poll-seconds-ago",
    "The seconds since the worker polled last, -1 before that; more than `max.poll.interval.ms`: it is stuck",
)
FETCH: Final = _gauges(
    FETCH_GROUP,
    {
        "records-consumed-total": "The number of records fetched, those of control batches apart",
        "bytes-consumed-total": "The bytes of these records",
        "records-lag-max": "The highest number of offsets that any partition read is behind its end",
    },
)
LAG: Final = GaugeSpec(
    FETCH_GROUP,
    (*_TAGS, "topic", "partition"),
    "records-lag",
    "The number of offsets that a partition is behind its end",
)
PRODUCER: Final = _gauges(
    PRODUCER_GROUP,
    {
        **_OF_CONNECTIONS,
        "record-send-total": "The number of records sent",
        "batch-size-avg": "The average bytes of a batch, over all topics",
        "records-per-request-avg": "The average number of records of a batch, over all topics",
        "buffer-total-bytes": "The bytes of records that may wait to be sent",
        "buffer-available-bytes": "How many of these are free",
    },
)

SPECS: Final[tuple[Spec, ...]] = (*CONSUMER.values(), LAST_POLL, *FETCH.values(), LAG, *PRODUCER.values())
