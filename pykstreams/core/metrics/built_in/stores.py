"""Metrics of stores, of their caches and of the RocksDB below them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pykstreams.core.metrics.levels import RecordingLevel
from pykstreams.core.metrics.specs import (
    GaugeSpec,
    SensorSpec,
    Spec,
    average_and_maximum,
    latencies,
    lowest,
    rate_of_calls,
)

GROUP: Final = "stream-state-metrics"
CACHE_GROUP: Final = "stream-record-cache-metrics"
_TAGS: Final = ("thread-id", "task-id", "<store-scope>-state-id")
_DEBUG, _TRACE = RecordingLevel.DEBUG, RecordingLevel.TRACE


def _operation(name: str, calls: str, call: str) -> SensorSpec:
    return SensorSpec(GROUP, _TAGS, _DEBUG, (*rate_of_calls(name, calls), *latencies(name, call, "ns")))


OPERATIONS: Final[Mapping[str, SensorSpec]] = {
    "put": _operation("put", "puts", "a put"),
    "put-if-absent": _operation("put-if-absent", "calls of put_if_absent", "a put_if_absent"),
    "put-all": _operation("put-all", "calls of put_all", "a put_all"),
    "get": _operation("get", "gets", "a get"),
    "fetch": _operation("fetch", "fetches of windows or sessions", "a fetch, without reading its rows,"),
    "delete": _operation("delete", "deletes", "a delete"),
    "remove": _operation("remove", "removals of sessions", "a removal"),
    "all": _operation("all", "calls of all", "a call of all, without reading its rows,"),
    "range": _operation("range", "ranges", "a range, without reading its rows,"),
    "prefix-scan": _operation("prefix-scan", "prefix scans", "a prefix scan, without reading its rows,"),
    "flush": _operation("flush", "flushes of the record cache", "a flush of the record cache"),
    "commit": _operation("commit", "commits", "a commit"),
    "restore": _operation("restore", "batches restored", "restoring a batch"),
}
"""By the first part of their names."""

E2E: Final = SensorSpec(
    GROUP,
    _TAGS,
    _TRACE,
    (
        *average_and_maximum("record-e2e-latency", "time from the timestamp of a record until it was put, in ms"),
        *lowest("record-e2e-latency", "time from the timestamp of a record until it was put, in ms"),
    ),
)
ITERATORS: Final = SensorSpec(
    GROUP,
    _TAGS,
    _DEBUG,
    average_and_maximum("iterator-duration", "time that an iterator was open, in ns"),
)
OPEN_ITERATORS: Final = GaugeSpec(GROUP, _TAGS, "num-open-iterators", "The number of open iterators", _DEBUG)
OLDEST_ITERATOR: Final = GaugeSpec(
    GROUP,
    _TAGS,
    "oldest-iterator-open-since-ms",
    "When the oldest open iterator was opened, in ms since the epoch; 0 without one",
    _DEBUG,
)
NUM_KEYS: Final = GaugeSpec(GROUP, _TAGS, "num-keys", "The number of rows of a store in memory")
BUFFER_SIZE: Final = SensorSpec(
    GROUP, _TAGS, _DEBUG, average_and_maximum("suppression-buffer-size", "size of the buffer, in bytes")
)
BUFFER_COUNT: Final = SensorSpec(
    GROUP, _TAGS, _DEBUG, average_and_maximum("suppression-buffer-count", "number of keys in the buffer")
)
HIT_RATIO: Final = SensorSpec(
    CACHE_GROUP,
    ("thread-id", "task-id", "record-cache-id"),
    _DEBUG,
    (
        *average_and_maximum("hit-ratio", "share of reads that the record cache could answer, between two flushes"),
        *lowest("hit-ratio", "share of reads that the record cache could answer, between two flushes"),
    ),
)

_PROPERTIES: Final = {
    "num-immutable-mem-table": "The number of memtables that wait to be flushed",
    "cur-size-active-mem-table": "The bytes of the memtable that is written to",
    "cur-size-all-mem-tables": "The bytes of all memtables that are not flushed yet",
    "size-all-mem-tables": "The bytes of all memtables, those that iterators hold included",
    "num-entries-active-mem-table": "The number of entries in the memtable that is written to",
    "num-entries-imm-mem-tables": "The number of entries in memtables that wait to be flushed",
    "num-deletes-active-mem-table": "The number of deletes in the memtable that is written to",
    "num-deletes-imm-mem-tables": "The number of deletes in memtables that wait to be flushed",
    "mem-table-flush-pending": "1 while a flush of a memtable is due, 0 otherwise",
    "num-running-flushes": "The number of flushes that run",
    "compaction-pending": "1 while a compaction is due, 0 otherwise",
    "num-running-compactions": "The number of compactions that run",
    "estimate-pending-compaction-bytes": "The bytes that compactions would have to rewrite",
    "total-sst-files-size": "The bytes of all files",
    "live-sst-files-size": "The bytes of the files of the latest version",
    "num-live-versions": "The number of versions that are in use",
    "block-cache-capacity": "The bytes that the block cache may hold; stores of a process share it",
    "block-cache-usage": "The bytes that the block cache holds; stores of a process share it",
    "block-cache-pinned-usage": "The bytes of the block cache that are pinned",
    "estimate-num-keys": "About how many keys there are",
    "estimate-table-readers-mem": "The bytes that readers of files take outside of the block cache",
    "background-errors": "The number of errors in the background",
}

ROCKSDB: Final = tuple(GaugeSpec(GROUP, _TAGS, name, text) for name, text in _PROPERTIES.items())
"""Properties of RocksDB, whose names are these behind ``rocksdb.``."""

_STATISTICS: Final = {
    "bytes-written-rate": "The bytes written per second",
    "bytes-written-total": "The bytes written",
    "bytes-read-rate": "The bytes read per second",
    "bytes-read-total": "The bytes read",
    "memtable-bytes-flushed-rate": "The bytes flushed from memtables per second",
    "memtable-bytes-flushed-total": "The bytes flushed from memtables",
    "memtable-hit-ratio": "The share of reads that memtables could answer",
    "memtable-flush-time-avg": "The average time that a flush of a memtable took, in ms",
    "memtable-flush-time-max": "The longest time that a flush of a memtable took, in ms",
    "block-cache-data-hit-ratio": "The share of data blocks that were in the block cache",
    "block-cache-index-hit-ratio": "The share of index blocks that were in the block cache",
    "block-cache-filter-hit-ratio": "The share of filter blocks that were in the block cache",
    "bytes-read-compaction-rate": "The bytes that compactions read per second",
    "bytes-written-compaction-rate": "The bytes that compactions wrote per second",
    "compaction-time-avg": "The average time that a compaction took, in ms",
    "compaction-time-max": "The longest time that a compaction took, in ms",
    "write-stall-duration-avg": "The average time that writers were held up at a time, in ms",
    "write-stall-duration-total": "The time that writers were held up, in ms",
    "number-file-errors-total": "The number of errors of files",
}

STATISTICS: Final = tuple(GaugeSpec(GROUP, _TAGS, name, text, _DEBUG) for name, text in _STATISTICS.items())
"""The counts of RocksDB, which cost each access; of its column families together."""

SPECS: Final[tuple[Spec, ...]] = (
    *OPERATIONS.values(),
    E2E,
    ITERATORS,
    OPEN_ITERATORS,
    OLDEST_ITERATOR,
    NUM_KEYS,
    BUFFER_SIZE,
    BUFFER_COUNT,
    HIT_RATIO,
    *ROCKSDB,
    *STATISTICS,
)
