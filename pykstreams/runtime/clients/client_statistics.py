"""Metrics of a Kafka client: takes what librdkafka tells of itself every ``statistics.interval.ms``."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.metrics.built_in import clients as built_in
from pykstreams.core.metrics.specs import GaugeSpec

log = logging.getLogger(__name__)

_Told = Mapping[str, Any]

_HIGHEST_LAG: Final = "records-lag-max"
_ISOLATION: Final = "read_committed"
"""The isolation level of librdkafka where none is set."""


class ClientStatistics:
    """The metrics of one client; its ``stats_cb``.

    :param metrics: those with the tag of the thread that the client belongs to.
    :param specs: its metrics by group.
    :param only_committed: whether it reads up to the first transaction that is open.
    """

    def __init__(
        self, metrics: StreamsMetrics, client_id: str, *specs: Mapping[str, GaugeSpec], only_committed: bool = False
    ) -> None:
        self._metrics = metrics
        self._client_id = client_id
        self._end = "ls_offset" if only_committed else "hi_offset"
        self._told: _Told = {}
        self._lags: dict[tuple[str, str], float] = {}
        self._known: set[tuple[str, str]] = set()
        """The partitions whose lags are shown, as long as they are read."""
        for group in specs:
            for name, spec in group.items():
                metrics.add_gauge(spec, self._gauge(name), client_id=client_id)

    def __call__(self, text: str) -> None:
        """Reads the statistics, which are JSON."""
        try:
            told = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            log.warning("the statistics of client %s cannot be read: %s", self._client_id, error)
            return
        if told.get("type") == "consumer":
            found = {(topic, number): self._lag(partition) for topic, number, partition in _partitions(told)}
            self._lags = {place: lag for place, lag in found.items() if lag is not None}
            for place in self._lags.keys() - self._known:
                self._show_lag(place)
            for place in self._known - self._lags.keys():
                self._hide_lag(place)
        self._told = told

    def _lag(self, partition: _Told) -> float | None:
        """How far a partition is behind its end; ``None`` where that is not known, or it is not read any more.

        librdkafka's own ``consumer_lag`` counts from offsets that the client has committed, and ours commit none.
        """
        taken, fetched = partition.get("app_offset", -1), partition.get("next_offset", -1)
        # what was fetched and is not queued was taken, or is a marker, or a record of an aborted transaction
        reached = taken if partition.get("fetchq_cnt") else max(taken, fetched)
        end = partition.get(self._end, -1)
        known = partition.get("fetch_state") == "active" and reached >= 0 and end >= 0
        return max(0, end - reached) if known else None

    def _show_lag(self, place: tuple[str, str]) -> None:
        self._known.add(place)
        self._metrics.add_gauge(built_in.LAG, lambda: self._lags.get(place, math.nan), **self._tags(place))

    def _hide_lag(self, place: tuple[str, str]) -> None:
        self._known.remove(place)
        self._metrics.remove(**self._tags(place))

    def _tags(self, place: tuple[str, str]) -> dict[str, str]:
        topic, partition = place
        return {"client_id": self._client_id, "topic": topic, "partition": partition}

    def _gauge(self, name: str) -> Callable[[], float]:
        if name == _HIGHEST_LAG:
            return lambda: max(self._lags.values(), default=math.nan)
        read = _READ[name]
        return lambda: read(self._told) if self._told else math.nan


def statistics_of(
    settings: Mapping[str, object], metrics: StreamsMetrics | None, *specs: Mapping[str, GaugeSpec]
) -> dict[str, object]:
    """Returns the ``stats_cb`` for a client with these settings; none without an interval, or where a user has one."""
    if metrics is None or "stats_cb" in settings or not int(str(settings.get("statistics.interval.ms", 0))):
        return {}
    only_committed = settings.get("isolation.level", _ISOLATION) == _ISOLATION
    return {"stats_cb": ClientStatistics(metrics, str(settings["client.id"]), *specs, only_committed=only_committed)}


def _partitions(told: _Told) -> Iterable[tuple[str, str, _Told]]:
    for topic, found in told.get("topics", {}).items():
        for number, partition in found.get("partitions", {}).items():
            if number != "-1":  # librdkafka's own, of records without a partition yet
                yield topic, number, partition


def _brokers(told: _Told) -> list[_Told]:
    return list(told.get("brokers", {}).values())


def _number(name: str) -> Callable[[_Told], float]:
    return lambda told: float(told.get(name, math.nan))


def _mean(windows: Iterable[_Told]) -> float:
    """The mean of several of librdkafka's windows."""
    found = [(window.get("avg", 0), window.get("cnt", 0)) for window in windows]
    count = sum(cnt for _, cnt in found)
    return sum(avg * cnt for avg, cnt in found) / count if count else math.nan


def _of_topics(name: str) -> Callable[[_Told], float]:
    return lambda told: _mean(topic.get(name, {}) for topic in told.get("topics", {}).values())


_READ: Final[Mapping[str, Callable[[_Told], float]]] = {
    "connection-count": lambda told: sum(broker.get("state") == "UP" for broker in _brokers(told)),
    "incoming-byte-total": _number("rx_bytes"),
    "outgoing-byte-total": _number("tx_bytes"),
    "request-total": _number("tx"),
    "response-total": _number("rx"),
    "request-latency-avg": lambda told: _mean(broker.get("rtt", {}) for broker in _brokers(told)) / 1000,
    "records-consumed-total": _number("rxmsgs"),
    "bytes-consumed-total": _number("rxmsg_bytes"),
    "record-send-total": _number("txmsgs"),
    "batch-size-avg": _of_topics("batchsize"),
    "records-per-request-avg": _of_topics("batchcnt"),
    "buffer-total-bytes": _number("msg_size_max"),
    "buffer-available-bytes": lambda told: float(told.get("msg_size_max", math.nan)) - float(told.get("msg_size", 0)),
}
