"""One step of a backfill: the tasks of one sub-topology take what is there for them.

A sub-topology has one step, or several where it is in a circle. The report of a task at the end of a step,
``TaskReport``, is all that it goes on from in the next one: files of its stores and of their changelogs, and what it
would have committed. So any process can run it, and an attempt that reported nothing, or second, has no effect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from pykstreams.bulk.application import Application, StorePlace
from pykstreams.bulk.backfills.history import HistoryReading
from pykstreams.bulk.sources.sources import Part
from pykstreams.core.ids import TaskId
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.bulk.description import StoreDescription, describe_store
from pykstreams.state.bulk.manifest import TaskFiles
from pykstreams.state.bulk.sst import SstFile
from pykstreams.topology.plan import SubtopologyPlan


@dataclass(frozen=True, slots=True)
class LoggedRows:
    """The rows that a store of a task has written to its changelog so far."""

    files: tuple[str, ...] = ()
    rows: int = 0


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The report of a task at the end of a step; with its files it is the state of the task.

    :param processed: how many records it took in this step.
    :param stores: what its stores consist of, those in memory only apart.
    :param committed: by input topic: the next offset, and the text that is committed beside it.
    :param logged: by store, where changelogs are kept.
    :param sent: by topic: the file of what it sent in this step.
    :param next_number: the number of the next record that it sends.
    :param sent_rows: how many records it sent in this step, by topic.
    :param sent_times: the highest timestamp that it has sent, by topic.
    """

    partition: int
    processed: int
    stores: Mapping[str, TaskFiles]
    committed: Mapping[str, tuple[int, str]]
    logged: Mapping[str, LoggedRows]
    sent: Mapping[str, str]
    sent_rows: Mapping[str, int]
    sent_times: Mapping[str, int]
    next_number: int

    def to_json(self) -> str:
        """As text."""
        found = asdict(self)
        for store in found["stores"].values():
            store["content"] = f"{store['content']:x}"
            for file in store["files"]:
                file.update(first=file["first"].hex(), last=file["last"].hex())
        return json.dumps(found)

    @classmethod
    def from_json(cls, text: str) -> TaskReport:
        """Reads it."""
        found: dict[str, Any] = json.loads(text)
        stores = {}
        for name, store in found.pop("stores").items():
            files = tuple(
                SstFile(**{**file, "first": bytes.fromhex(file["first"]), "last": bytes.fromhex(file["last"])})
                for file in store["files"]
            )
            stores[name] = TaskFiles(**{**store, "files": files, "content": int(store["content"], 16)})
        return cls(
            stores=stores,
            committed={topic: (offset, text) for topic, (offset, text) in found.pop("committed").items()},
            logged={name: LoggedRows(tuple(one["files"]), one["rows"]) for name, one in found.pop("logged").items()},
            **found,
        )


@dataclass(frozen=True)
class BackfillStep:
    """A step as every process of the job knows it.

    :param number: no other step of the job has it.
    :param root: the folder of the bootstrap.
    :param work: a folder for what passes from step to step; every process can reach it.
    :param scratch: where tasks keep their databases meanwhile; ``None`` for where the machine keeps such things.
    :param partitions: the partition counts of topics that are written.
    :param logs: whether the changelogs of all stores are kept; if not, those of stores in memory are.
    :param states: the reports of the tasks in the step before, by partition; none in their first one.
    :param global_topics: what the global stores are made of.
    """

    application: Application
    layout: TopicLayout
    subtopology: int
    number: int
    root: str
    work: str
    scratch: str | None
    partitions: Mapping[str, int]
    logs: bool
    states: Mapping[int, TaskReport] = field(default_factory=dict)
    global_topics: tuple[tuple[HistoryReading, tuple[Part, ...]], ...] = ()

    @cached_property
    def part(self) -> SubtopologyPlan:
        """The sub-topology."""
        return next(part for part in self.application.plan.subtopologies if part.id == self.subtopology)

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return sum(task.subtopology == self.subtopology for task in self.layout.inputs)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The topics that are read; their numbers say which of two records of one time comes first."""
        return inputs_of(self.layout, self.part)

    @cached_property
    def stores(self) -> Mapping[str, StoreDescription]:
        """The stores, described."""
        part, config = self.part, self.application.config
        return {
            name: describe_store(builder, config, part.id, part.changelogs.get(name))
            for name, builder in part.stores.items()
        }

    @property
    def logged_stores(self) -> dict[str, str]:
        """Which of the application's own changelogs are kept: store -> topic."""
        own = {name: topic for name, topic in self.part.changelogs.items() if topic in self.part.changelog_topics}
        return {name: topic for name, topic in own.items() if self.logs or not self.stores[name].in_files}

    def place(self, store: str) -> StorePlace:
        """Where a store is."""
        return StorePlace(self.application, self.part, self.part.stores[store])

    def task(self, partition: int) -> TaskId:
        """The task of a partition."""
        return TaskId(self.subtopology, partition)

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic that is written; that of the tasks where nobody knows."""
        return self.layout.partitions.get(topic) or self.partitions.get(topic) or self.tasks

    def __getstate__(self) -> dict[str, object]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def inputs_of(layout: TopicLayout, part: SubtopologyPlan) -> tuple[str, ...]:
    """The topics that a sub-topology reads, in the order of the topology, those that match patterns last."""
    found = {place.topic for task, places in layout.inputs.items() if task.subtopology == part.id for place in places}
    named = tuple(dict.fromkeys(part.source_topics))
    return (*(topic for topic in named if topic in found), *sorted(found.difference(named)))


def keeps_all(description: StoreDescription) -> bool:
    """Whether each record of its changelog counts, and not only the last of each key.

    Versions are all there is to a versioned store; a store that retains duplicates numbers its rows by its changelog.
    """
    return description.kind == "versioned" or bool(description.shape.get("retain_duplicates"))


def needs_changelog(description: StoreDescription) -> str | None:
    """Why the files of a store alone would not do, if they would not."""
    if not description.in_files:
        return "is not kept on disk, and is read from its changelog at each start"
    if description.shape.get("retain_duplicates"):
        return "numbers its rows by the offsets of its changelog"
    return None
