"""A backfill from its first step to the last: what has been sent and not been read, and what the tasks are at.

Invariant: nothing of an attempt counts before it is reported to the driver, and of each task one report counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pykstreams.bulk.application import Application, StorePlace
from pykstreams.bulk.backfills.engines import Input, Steps
from pykstreams.bulk.backfills.history import HistoryReading, TopicHistory
from pykstreams.bulk.backfills.order import in_order, reads
from pykstreams.bulk.backfills.step import BackfillStep, TaskReport, inputs_of
from pykstreams.bulk.engines.local import Progress
from pykstreams.bulk.sources.sources import Files, Part
from pykstreams.core.errors import BootstrapError, StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.topology.plan import SubtopologyPlan

log = logging.getLogger(__name__)

ShowProgress = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True)
class History:
    """The history of a topic as the job reads it: a source, or the parts of a topic on the brokers."""

    said: TopicHistory
    source: object = None
    parts: tuple[Part, ...] = ()


@dataclass
class BackfillJob:
    """Runs all sub-topologies.

    :param histories: by topic.
    :param partitions: the partition counts of topics that are written and not read.
    :param logs: whether changelogs are kept to be written.
    """

    application: Application
    layout: TopicLayout
    histories: Mapping[str, History]
    partitions: Mapping[str, int]
    root: Path
    work: Path
    logs: bool
    steps: Steps
    progress: ShowProgress
    reports: dict[TaskId, TaskReport] = field(default_factory=dict)
    sent: dict[str, list[str]] = field(default_factory=dict)
    """By topic: the files of what was sent, in the order of the steps."""
    sent_rows: dict[str, int] = field(default_factory=dict)
    superseded: list[str] = field(default_factory=list)
    """Files of stores that went on."""
    _unread: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    _readable: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    _number: int = 0

    def run(self) -> None:
        """Runs the steps until nothing is left to read."""
        for group in in_order(self.application.plan):
            waiting = list(group)
            while waiting:
                for part in waiting:
                    self._step(part)
                waiting = [part for part in group if part.id in self._unread]
        if self._unread:
            late = {topic for topics in self._unread.values() for topic in topics}
            raise StreamsError(
                f"records were sent to {sorted(late)} when what reads them had ended; a topic that is chosen for each "
                "record cannot be one of the application's own repartition topics"
            )

    def step(self, part: SubtopologyPlan) -> BackfillStep:
        """The next step of a sub-topology."""
        states = {task.partition: report for task, report in self.reports.items() if task.subtopology == part.id}
        return BackfillStep(
            self.application,
            self.layout,
            part.id,
            self._number,
            str(self.root),
            str(self.work),
            self.steps.scratch(self.work),
            self.partitions,
            self.logs,
            states,
            tuple(self._global_topics()),
        )

    def _step(self, part: SubtopologyPlan) -> None:
        step = self.step(part)
        self._number += 1
        inputs = [one for topic in step.inputs for one in self._inputs(step, topic)]
        self._unread.pop(part.id, None)
        name = f"sub-topology {part.id}" + (", again" if step.states else "")
        with self.progress(name) as shown:
            found = self.steps.run(step, inputs, shown)
        taken = [TaskReport.from_json(text) for text in found]
        for report in taken:
            self._take(step, report)
        log.info("%s: %s tasks took %s records", name, len(taken), sum(report.processed for report in taken))
        missing = [number for number in range(step.tasks) if step.task(number) not in self.reports]
        if missing:
            raise BootstrapError(
                f"sub-topology {part.id} is not complete: of {step.tasks} tasks some have told nothing ({missing[:5]})"
                "; nothing is published, run the job again"
            )

    def _take(self, step: BackfillStep, report: TaskReport) -> None:
        task = step.task(report.partition)
        old = step.states.get(report.partition)
        if self.reports.get(task) is not old:
            return  # a second telling of the same step
        if old is not None:
            self.superseded += [file.path for store in old.stores.values() for file in store.files]
        self.reports[task] = report
        for topic, file in report.sent.items():
            self.sent.setdefault(topic, []).append(file)
            self.sent_rows[topic] = self.sent_rows.get(topic, 0) + report.sent_rows[topic]
            for part in self.application.plan.subtopologies:
                if reads(part, topic):
                    self._unread.setdefault(part.id, {}).setdefault(topic, []).append(file)

    def _inputs(self, step: BackfillStep, topic: str) -> list[Input]:
        number = step.inputs.index(topic)
        found = []
        history = self.histories.get(topic)
        if history is not None and not step.states:
            found.append(Input(self._reading(topic, number), history.source, history.parts))
        files = self._unread.get(step.subtopology, {}).get(topic)
        if files:
            found.append(Input(self._reading(topic, number, sent=True), Files(tuple(files), "parquet")))
        return found

    def _global_topics(self) -> list[tuple[HistoryReading, tuple[Part, ...]]]:
        found = []
        for store in self.application.plan.global_stores:
            topic = store.topic
            if topic in self.histories:
                found.append((self._reading(topic, 0), self._parts_anywhere(topic)))
            if topic in self.sent:
                parts = tuple(Files(tuple(self.sent[topic]), "parquet").parts())
                found.append((self._reading(topic, 0, sent=True), parts))
        return found

    def _parts_anywhere(self, topic: str) -> tuple[Part, ...]:
        """The history of a topic as parts that any process can read; made once."""
        if topic not in self._readable:
            history = self.histories[topic]
            folder = self.work / "global" / topic
            self._readable[topic] = history.parts or tuple(self.steps.files(history.source, folder).parts())
        return self._readable[topic]

    def _reading(self, topic: str, number: int, *, sent: bool = False) -> HistoryReading:
        """How a topic is read; without the source, which not every process can have."""
        history = None if sent else self.histories[topic]
        said = TopicHistory(None) if history is None else replace(history.said, source=None)
        in_order = history is not None and bool(history.parts)
        return HistoryReading(self.application, topic, number, self.layout.partitions[topic], said, sent, in_order)


def external_topics(application: Application, layout: TopicLayout) -> set[str]:
    """The topics that are read and are not the application's own."""
    plan = application.plan
    read = {topic for part in plan.subtopologies for topic in inputs_of(layout, part)}
    return (read - internal_topics(application)) | {store.topic for store in plan.global_stores}


def internal_topics(application: Application) -> set[str]:
    """The application's own topics: repartition topics and changelogs."""
    plan = application.plan
    return {topic for part in plan.subtopologies for topic in (*part.repartition_topics, *part.changelog_topics)}


def own_changelogs(application: Application) -> list[StorePlace]:
    """The stores that have a changelog which is the application's own."""
    places = [
        StorePlace(application, part, builder)
        for part in application.plan.subtopologies
        for builder in part.stores.values()
    ]
    return [place for place in places if place.own_changelog]
