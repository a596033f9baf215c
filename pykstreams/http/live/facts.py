"""The facts that the live page and ``pykstreams top`` show: one instance at one moment, and all of them together.

What is told here is counted anyway; the rates are made of two answers by whoever shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import Metric, MetricName
from pykstreams.core.metrics.built_in import tasks as built_in
from pykstreams.http.live.log_lines import LogLines
from pykstreams.http.served_application import ServedApplication
from pykstreams.http.staleness import Staleness
from pykstreams.runtime.health import Health
from pykstreams.runtime.queries.catalog import Role
from pykstreams.runtime.tasks.dropped import NodeDrops
from pykstreams.runtime.worker.thread_metadata import TaskMetadata, ThreadMetadata

Facts: TypeAlias = dict[str, object]
"""Facts as JSON has them."""

_COUNTED = {
    (built_in.TOPIC_GROUP, "records-consumed-total"): "consumed",
    (built_in.TOPIC_GROUP, "records-produced-total"): "produced",
    (built_in.NODE_GROUP, "suppression-emit-total"): "emitted",
}
"""Metrics of nodes, and what the facts call them."""


class LiveFacts:
    """Gathers the facts of this instance; may be used from any thread."""

    def __init__(self, streams: ServedApplication, log: LogLines, staleness: Staleness, clock: Clock) -> None:
        self._streams = streams
        self._log = log
        self._staleness = staleness
        self._clock = clock

    def gather(self) -> Facts:
        """Returns the facts as they are now."""
        streams = self._streams
        health, threads, metrics = streams.health(), streams.metadata_for_local_threads(), streams.metrics()
        queries, dropped = streams.local_queries, streams.dropped_records()
        host = queries.host
        return {
            "application": streams.application_id,
            "instance": f"{host.host}:{host.port}" if host.port >= 0 else "",
            "now_ms": self._clock.now_ms(),
            "state": "PAUSED" if streams.is_paused else health.state.value,
            "ready": health.ready,
            "alive": health.alive,
            "threads": [{"name": one.thread_name, "state": one.thread_state} for one in threads],
            "tasks": _tasks(health, threads, metrics, dropped),
            "standbys": self._standbys(threads),
            "nodes": _nodes(metrics, dropped.values()),
            "stores": [
                {"name": one.name, "kind": one.kind.value, "global": one.is_global}
                for one in queries.descriptions().values()
            ],
            "log": self._log.lines(),
        }

    def _standbys(self, threads: Iterable[ThreadMetadata]) -> list[Facts]:
        """The copies of this instance, with the offsets that they are behind, where brokers say so at once."""
        if not any(thread.standby_tasks for thread in threads):
            return []
        queries, found = self._streams.local_queries, list[Facts]()
        try:
            lags = self._staleness.lags()
            copies = [
                (name, held.partition)
                for name in queries.descriptions()
                for held in queries.held(name)
                if held.role is Role.STANDBY
            ]
        except InvalidStateStoreError:  # it is not running: ask again
            return []
        for name, partition in copies:
            lag = lags.get(name, {}).get(partition)
            found.append({"store": name, "partition": partition, "lag": None if lag is None else lag.offset_lag})
        return found


def _tasks(
    health: Health,
    threads: Iterable[ThreadMetadata],
    metrics: Mapping[MetricName, Metric],
    dropped: Mapping[TaskId, Mapping[str, NodeDrops]],
) -> list[Facts]:
    processed = _processed(metrics)
    where = {task.task_id: (thread, task) for thread in threads for task in thread.active_tasks}
    found: list[Facts] = []
    for task_id, one in sorted(health.tasks.items()):
        thread, task = where.get(task_id, (None, None))
        drops = dropped.get(task_id, {}).values()
        inputs = [] if task is None else _inputs(task)
        lags = [one["lag"] for one in inputs if isinstance(one["lag"], int)]
        found.append(
            {
                "id": str(task_id),
                "subtopology": task_id.subtopology,
                "partition": task_id.partition,
                "thread": "" if thread is None else thread.thread_name,
                "running": one.running,
                "remaining": one.remaining,
                "processed": processed.get(str(task_id), 0),
                "dropped": sum(drop.total for drop in drops),
                "late": sum(drop.late for drop in drops),
                "failed": sum(drop.failed for drop in drops),
                "lag": sum(lags) if lags else None,
                "inputs": inputs,
            }
        )
    return found


def _inputs(task: TaskMetadata) -> list[Facts]:
    """The partitions that a task reads, with the offsets from what is committed to the end.

    Before the first commit they count from where reading began: what lies before that is nobody's work.
    """
    found: list[Facts] = []
    for place in sorted(task.topic_partitions):
        committed, end = task.committed_offsets.get(place, -1), task.end_offsets.get(place, -1)
        start = committed if committed >= 0 else task.start_offsets.get(place, -1)
        lag = max(0, end - start) if start >= 0 and end >= 0 else None
        found.append({"topic": place.topic, "partition": place.partition, "committed": committed, "lag": lag})
    return found


def _processed(metrics: Mapping[MetricName, Metric]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for name, metric in metrics.items():
        if name.name == built_in.PROCESS_TOTAL and name.group == built_in.GROUP:
            found[dict(name.tags).get("task-id", "")] += int(metric.value)
    return found


def _nodes(
    metrics: Mapping[MetricName, Metric], dropped: Iterable[Mapping[str, NodeDrops]]
) -> dict[str, dict[str, int]]:
    """The counts of each node in all tasks of this instance; nodes that have counted nothing are left out."""
    found: dict[str, Counter[str]] = {}
    for name, metric in metrics.items():
        counted = _COUNTED.get((name.group, name.name))
        if counted is not None:
            found.setdefault(dict(name.tags)["processor-node-id"], Counter())[counted] += int(metric.value)
    for nodes in dropped:
        for node, drops in nodes.items():
            found.setdefault(node, Counter()).update(
                {"dropped": drops.total, "late": drops.late, "failed": drops.failed}
            )
    return {node: dict(counts) for node, counts in sorted(found.items())}
