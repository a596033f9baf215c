"""The building of one store, as every task of the job sees it: what is built, for how many tasks, and who takes what.

A *share* is a part of the keys of one partition; each is folded and written by one task of the job. There is one share
a partition, unless there are fewer partitions than cores or one partition has most of the rows; the last task of the
job takes the rows that were refused.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from pykstreams.bulk.application import Application, tasks_of
from pykstreams.bulk.sources.sources import KafkaTopic
from pykstreams.bulk.sources.store_bootstrap import StoreBootstrap
from pykstreams.bulk.targets.choice import choose_target
from pykstreams.bulk.targets.target import Target
from pykstreams.runtime.topics.topic_admin import TopicLayout


class Share(NamedTuple):
    """The keys that one task of the job builds."""

    partition: int
    split: int


@dataclass(frozen=True)
class StoreJob:
    """The building of one store.

    :param spec: what the user has said, without the source.
    :param topic: the topic that is the source, if one is.
    :param until: by partition of that topic, where the application is to go on, as far as it is known.
    :param started_ms: when the job was started: the time of rows without one.
    :param root: the folder of the bootstrap.
    :param logs: whether the changelog is written.
    :param bounds: by partition, the keys at which it is divided among several tasks.
    """

    application: Application
    spec: StoreBootstrap
    layout: TopicLayout
    started_ms: int
    root: str
    logs: bool
    topic: KafkaTopic | None = None
    until: Mapping[int, int] = field(default_factory=dict)
    bounds: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)

    @cached_property
    def target(self) -> Target:
        """How rows become those of the store."""
        return choose_target(self.application, self.spec)

    @property
    def stays(self) -> bool:
        """Whether rows stay in the partition of the topic that they are read from: a changelog knows where they
        belong.
        """
        return self.topic is not None and self.spec.content == "changelog" and self.spec.partitioner is None

    @property
    def carries_headers(self) -> bool:
        """Whether rows have the headers that the records of a changelog have in the topic."""
        return self.topic is not None and self.spec.content == "changelog"

    @property
    def last_counts(self) -> bool:
        """Whether of the records of a key the last one in its partition of the topic counts, whatever its time is."""
        return self.topic is not None and self.target.keeps_last

    @property
    def source_partitions(self) -> int | None:
        """How many partitions the topic must have then."""
        return tasks_of(self.layout, self.target.store.part) if self.stays else None

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The shares of the tasks of the job, by their numbers."""
        partitions = tasks_of(self.layout, self.target.store.part)
        return tuple(
            Share(partition, split)
            for partition in range(partitions)
            for split in range(len(self.bounds.get(partition, ())) + 1)
        )

    @property
    def tasks(self) -> int:
        """How many tasks the job has."""
        return len(self.shares) + 1

    @property
    def refused(self) -> int:
        """The number of the task that takes what was refused."""
        return len(self.shares)

    def chooser(self) -> Callable[[int, bytes], int]:
        """Makes the function that chooses the task for a partition and a key."""
        if not self.bounds:
            return lambda partition, key: partition
        first = {share.partition: at for at, share in reversed(list(enumerate(self.shares)))}
        bounds = self.bounds

        def choose(partition: int, key: bytes) -> int:
            return first[partition] + bisect_right(bounds.get(partition, ()), key)

        return choose

    def divided(self, bounds: Mapping[int, tuple[bytes, ...]]) -> StoreJob:
        """The same job with partitions divided."""
        return replace(self, bounds=bounds)

    def __getstate__(self) -> dict[str, object]:
        kept = ("application", "spec", "layout", "started_ms", "root", "logs", "topic", "bounds")
        return {name: self.__dict__[name] for name in kept}
