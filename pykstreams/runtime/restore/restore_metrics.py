"""Measures restoring, as a listener of it."""

from __future__ import annotations

from collections.abc import Mapping

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import Sensor, StreamsMetrics
from pykstreams.core.metrics.built_in import tasks as built_in
from pykstreams.runtime.metrics.updater_metrics import UpdaterMetrics
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.topology.plan import TopologyPlan


class RestoreMetrics(StateRestoreListener):
    """Counts what is read back, by task; for the thread of a restorer.

    :param metrics: those with the tag of the thread whose tasks these are; tasks that close remove theirs.
    :param updater: counts the records of all tasks.
    :param standby: whether these are standby tasks, which have other names and nothing that remains.
    """

    def __init__(
        self, metrics: StreamsMetrics, plan: TopologyPlan, updater: UpdaterMetrics, *, standby: bool = False
    ) -> None:
        self._metrics = metrics
        self._updater = updater
        self._spec = built_in.UPDATE if standby else built_in.RESTORE
        self._standby = standby
        self._owners: Mapping[str, int] = {
            topic: part.id for part in plan.subtopologies for topic in part.changelogs.values()
        }
        self._remaining: dict[TopicPartition, tuple[int, int]] = {}
        self._sensors: dict[TaskId, tuple[Sensor, Sensor | None]] = {}

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        task = self._task(topic_partition)
        known = self._sensors.get(task, ())
        if not known or not all(self._metrics.lists(one) for one in known if one is not None):
            # it is new, or opened anew, and has closed the metrics of its life before
            remaining = None if self._standby else self._metrics.sensor(built_in.REMAINING, task_id=str(task))
            self._sensors[task] = self._metrics.sensor(self._spec, task_id=str(task)), remaining
        self._remaining[topic_partition] = (starting_offset, ending_offset)
        self._tell(task)

    def on_batch_restored(
        self, topic_partition: TopicPartition, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        task = self._task(topic_partition)
        self._updater.records(num_restored)
        self._sensors[task][0].record(num_restored)
        self._remaining[topic_partition] = (batch_end_offset + 1, self._remaining[topic_partition][1])
        self._tell(task)

    def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self._remaining.pop(topic_partition, None)
        self._tell(self._task(topic_partition))

    def on_restore_suspended(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self._remaining.pop(topic_partition, None)

    def _task(self, place: TopicPartition) -> TaskId:
        return TaskId(self._owners[place.topic], place.partition)

    def _tell(self, task: TaskId) -> None:
        sensor = self._sensors[task][1]
        if sensor is not None:
            left = (end - at for place, (at, end) in self._remaining.items() if self._task(place) == task)
            sensor.record(sum(max(0, offsets) for offsets in left))
