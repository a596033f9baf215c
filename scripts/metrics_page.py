"""Makes docs/reference/metrics.md from the built-in metrics: ``python scripts/metrics_page.py``.

A test compares the page with what this script gives, so run it after every change of a metric.
"""
# ruff: noqa: E501 - rows of tables cannot be broken

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pykstreams.core.metrics.built_in.all_specs import ALL
from pykstreams.core.metrics.specs import each_metric
from pykstreams.metrics.sources import exported_name, only_grows

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "metrics.md"

_NO_MINIMUM = "the text in which the binding gives RocksDB's statistics has no minima"
_NEVER_SKIPPED = "updates that change nothing are forwarded, as in Kafka Streams 4.3.1, which has the sensor and nobody who records it"

MISSING: Mapping[str, str] = {
    "stream-metrics: commit-id": "a wheel does not know its commit; see `version`",
    "stream-processor-node-metrics: idempotent-update-skip-rate": _NEVER_SKIPPED,
    "stream-processor-node-metrics: idempotent-update-skip-total": _NEVER_SKIPPED,
    "stream-state-metrics: compaction-time-min": _NO_MINIMUM,
    "stream-state-metrics: memtable-flush-time-min": _NO_MINIMUM,
    "stream-state-metrics: number-open-files": "RocksDB counts files that are opened, and no longer those that are closed",
    "stream-state-updater-metrics: checkpoint-ratio": "stores keep how far they are while they restore; it is part of `active-restore-ratio`",
}
"""Metrics of Kafka Streams 4.3.1 that there are not, and why."""

_INTRODUCTION = """\
<!-- made by scripts/metrics_page.py; do not edit -->

# Metrics

`KafkaStreams.metrics()` and `TopologyTestDriver.metrics()` have these metrics, under the names, groups and tags of Kafka
Streams 4.3.1. How to use them, and add some: [the guide](../guides/metrics.md).

- `metrics.recording.level` says how much is measured; a metric of a higher level is not listed.
- Rates, averages, maxima and minima look at the last `metrics.num.samples` samples of `metrics.sample.window.ms`.
- What RocksDB counts itself (`bytes-written-rate` to `number-file-errors-total`) is there from `DEBUG` on; its rates and ratios look at the last
  minute in which they were read, its averages and maxima at all since the store was opened.
- Rates are per second; a ratio is the share of time.
- Latencies of workers are in ms, those of tasks, stores and punctuators in ns. The age of a record (`record-e2e-latency`) is in ms.
- Values of workers and tasks are at most 100 ms old.
- `thread-id` is the name of a worker, of a state updater, or of the thread of standby tasks; in a test driver that of its thread.
- The tag of a store is named by its kind, such as `rocksdb-state-id`, `rocksdb-window-state-id` or `in-memory-state-id`.
- `selected-key-collisions-total` (`stream-processor-node-metrics`, tags `task-id` and `processor-node-id`) has no counterpart in Java: joins with selected
  keys have it, and it counts [results that found their key taken](../guides/non-key-joins.md).
- For Prometheus, names have an underscore for each hyphen, and `state_id` and `store_scope` for the tag of a store.

## What it costs

"""

_AFTER_COSTS = """
Why some metrics are measured by batch, or at another level than in Kafka Streams: [decision 0033](../decisions/0033-the-cost-of-metrics.md).

"""

COSTS = """\
At `INFO` nothing is done per record: a batch of records costs a few additions. At `DEBUG` the path of a record is wrapped at sources, at sinks
and other nodes without children, and so are the methods of stores and caches.

The path of a record of `w1-json` (a filter and a `map_values` over JSON) without the Kafka clients, on 2026-11-29, with nothing else running: the lowest CPU time of 150 rounds in turn, in the last four of five runs (in the first one the machine was slower at `INFO`: 362 ns).

```sh
python -m benchmarks.record_path
```

| | CPU of a record |
|---|---|
| `INFO` | 2455 to 2474 ns |
| `DEBUG` | 545 to 619 ns more |

With the clients a record took 6690 to 6980 ns in the same minutes (`python -m benchmarks --workloads w1-json --records 1000000 --runs 3 --only pykstreams`), so `DEBUG` takes some 8 to 9 % more. That was a CPython built without optimizations; on one with them, on the same day, it was 438 to 487 ns (three runs) of 5810 to 5900. Whole runs of two million records, in turn (`python -m benchmarks.metrics --levels INFO,DEBUG --records 2000000 --runs 5`), are less even than that: `DEBUG` took 0.96 to 1.10 of the CPU of `INFO` in its five rounds, 0.975 in the middle one.

On 2026-11-28, before that was made quicker and with nothing else running, the interpreter of a worker that ran `w1-json` was looked at 200 times a second for 10 s (`py-spy record`): 0.9 % of the samples in which it worked were in code of metrics at `INFO`, and 12 % at `DEBUG`, of which the threads of the clients, in C, are not a part. In seven rounds of whole runs `INFO` took 0.90 to 1.19 of the CPU without metrics, too uneven
to tell less than a tenth.
"""


def page() -> str:
    """The text of the page."""
    return _INTRODUCTION + COSTS + _AFTER_COSTS + "\n".join(_groups()) + "\n" + "\n".join(_missing()) + "\n"


def _groups() -> Iterator[str]:
    rows: dict[str, dict[str, str]] = {}
    for group, name, tags, level, text, gauge in each_metric(ALL):
        shown = "`, `".join(tags)
        prometheus = exported_name(group, name)
        if only_grows(name) and not prometheus.endswith("_total"):
            prometheus += "_total"
        kind = "gauge, " if gauge else ""
        if name not in rows.setdefault(group, {}):  # of sources and of other nodes, at two levels
            rows[group][name] = f"| `{name}` | {kind}{level.value} | `{shown}` | `{prometheus}` | {text} |"
    for group, found in rows.items():
        yield f"## `{group}`\n"
        yield "| name | level | tags | for Prometheus | meaning |"
        yield "|---|---|---|---|---|"
        yield from found.values()
        yield ""


def _missing() -> Iterator[str]:
    yield "## Metrics of Kafka Streams that there are not\n"
    yield "| metric | why |"
    yield "|---|---|"
    for name, reason in MISSING.items():
        yield f"| `{name}` | {reason} |"


if __name__ == "__main__":
    PAGE.write_text(page())
