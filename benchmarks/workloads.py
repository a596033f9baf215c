"""The table of workloads: what flows in, and which topics the work passes through.

A new one is a row here, and a program of the same name in ``programs/topologies.py``,
``programs/java/src/Workloads.java`` and, where ``has_floor``, ``programs/bare.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypedDict

from benchmarks.settings import AT_LEAST_ONCE, CACHE_BYTES, DEFAULT_CACHE_BYTES, EXACTLY_ONCE
from benchmarks.topics.avro_events import avro_events
from benchmarks.topics.fill import Topics
from benchmarks.topics.payloads import (
    Payload,
    customer_versions,
    customers,
    events_beside_versions,
    events_of_many,
    json_events,
    orders,
    products,
    string_events,
    totals,
)


class _Rules(TypedDict):
    sources: int
    counts_reads: bool
    cache_bytes: int
    same_output: bool


@dataclass(frozen=True, slots=True)
class Workload:
    """One row."""

    name: str
    title: str
    events: Callable[[int], Iterator[Payload]] | None
    """The records of the input, which all programs share; ``None`` when it is empty."""
    table: Callable[[], Iterator[Payload]] | None = None
    """The rows of a table that is read besides, from the topic ``<source>-table``."""
    through: tuple[str, ...] = ()
    """Internal topics that each record passes through once, without the application's prefix."""
    sources: int = 1
    """How many topics the records are spread over evenly; several are named ``<source>-1``, ``<source>-2``, ..."""
    counts_reads: bool = False
    """Whether a further run, which is not timed, counts the reads of stores."""
    other_way_of: str | None = None
    """The workload that does the same work in another way; it runs before."""
    updates: Callable[[int, int], Iterator[Payload]] | None = None
    """(records, version) -> rows of the table. The first version is there from the start, the second is written when
    all records are done, and measured apart: it gives as many results again. A record is done when its result is, so
    only ``through`` is looked at; all topics belong to one run.
    """
    most: int | None = None
    """How many records it has at most."""
    cache_bytes: int = CACHE_BYTES
    guarantee: str = AT_LEAST_ONCE
    """The setting ``processing.guarantee``."""
    has_floor: bool = True
    """Whether there is a bare loop for it."""
    changelog: str | None = None
    """The store whose changelog is filled before each run, when restoring it is the work."""
    restores: bool = False
    """Whether it is measured from its first to its last record; else only the second half counts."""
    same_output: bool = False
    """Whether all programs must write equally many records; with a cache, how many depends on timing."""

    @property
    def source(self) -> str:
        """The topic that a program reads."""
        name = self.events.__name__.replace("_", "-") if self.events else "empty"
        return f"bench-input-{name}" if self.sources == 1 else f"bench-input-{name}-of-{self.sources}"

    def source_of(self, application_id: str) -> str:
        """The topic that a program reads in one run."""
        return self.source if self.updates is None else f"{application_id}-input"

    def update(self, topics: Topics, application_id: str, records: int, version: int) -> None:
        """Writes a version of all rows of the table."""
        if self.updates is not None:
            topics.fill(f"{self.source_of(application_id)}-table", self.updates(records, version))

    @property
    def source_topics(self) -> tuple[str, ...]:
        """The topics that hold the records."""
        if self.sources == 1:
            return (self.source,)
        return tuple(f"{self.source}-{number}" for number in range(1, self.sources + 1))

    def inputs(self, records: int) -> dict[str, Iterable[Payload]]:
        """What the programs read, by topic, in all runs."""
        if self.updates is not None:
            return {}
        if self.sources > 1:
            each = records // self.sources
            return {topic: json_events(each, seed) for seed, topic in enumerate(self.source_topics)}
        found: dict[str, Iterable[Payload]] = {self.source: self.events(records) if self.events else ()}
        if self.table is not None:
            found[f"{self.source}-table"] = self.table()
        return found

    def prepare(self, topics: Topics, application_id: str, records: int) -> None:
        """Makes what one run needs besides the input."""
        topics.create(f"{application_id}-output")
        if self.updates is not None and self.events is not None:
            source = self.source_of(application_id)
            topics.create(source)
            topics.create(f"{source}-table")
            topics.fill(source, self.events(records))
            self.update(topics, application_id, records, 1)
        if self.changelog is not None:
            name = f"{application_id}-{self.changelog}-changelog"
            topics.create(name, compacted=True)
            topics.fill(name, totals(records))


_CUSTOMERS: _Rules = {"sources": 3, "counts_reads": True, "cache_bytes": 0, "same_output": True}

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("w1-json", "filter and map values, JSON", json_events, same_output=True),
        Workload("w1-string", "filter and map values, strings", string_events, same_output=True),
        Workload("w1-avro", "w1-json in Avro, with a registry", avro_events, same_output=True),
        Workload("w2", "group by key and aggregate: RocksDB, changelog", json_events),
        Workload("w2-evicting", "w2 with Kafka's default cache", json_events, cache_bytes=DEFAULT_CACHE_BYTES),
        Workload("w2-uncached", "w2 without a cache", json_events, cache_bytes=0, same_output=True),
        Workload(
            "w2-many-keys",
            "w2 with Kafka's default cache and ten million keys",
            events_of_many,
            cache_bytes=DEFAULT_CACHE_BYTES,
        ),
        Workload("w2-exactly-once", "w2 in transactions", json_events, guarantee=EXACTLY_ONCE),
        Workload("w3", "re-key through a repartition topic and count", json_events, through=("by-user-repartition",)),
        Workload(
            "w3-exactly-once",
            "w3 in transactions",
            json_events,
            through=("by-user-repartition",),
            guarantee=EXACTLY_ONCE,
        ),
        Workload("w4", "count in windows of a minute: RocksDB, changelog", json_events),
        Workload("w5", "join a stream with a table: RocksDB", json_events, table=customers, same_output=True),
        Workload(
            "w6",
            "foreign-key join, uncached",
            orders,
            updates=products,
            through=("priced-subscription-response-topic",),
            most=200_000,
            cache_bytes=0,
            same_output=True,
        ),
        Workload("cogroup", "three streams into one store, uncached: cogroup", json_events, **_CUSTOMERS),
        Workload(
            "cogroup-joins",
            "the same: three aggregates, two outer joins",
            json_events,
            other_way_of="cogroup",
            **_CUSTOMERS,
        ),
        Workload("sessions", "count in sessions with a gap of 20 s", json_events, has_floor=False),
        Workload("sliding", "count in sliding windows of 20 s", json_events, has_floor=False),
        Workload(
            "suppressed", "w4, each window once, when it is closed", json_events, has_floor=False, same_output=True
        ),
        Workload(
            "stream-join",
            "join two streams, 20 s apart at most",
            json_events,
            sources=2,
            has_floor=False,
            same_output=True,
        ),
        Workload(
            "versioned-join",
            "w5 with a versioned table, ten versions a key",
            events_beside_versions,
            table=customer_versions,
            has_floor=False,
            same_output=True,
        ),
        Workload("restore", "restore a store from its changelog", None, changelog="totals", restores=True),
    )
}
