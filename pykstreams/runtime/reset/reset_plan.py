"""The plan of a reset: read from the cluster and the disk, shown, and then carried out as it was shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pykstreams.core.errors import ConfigError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.names import looks_internal
from pykstreams.topology.plan import TopologyPlan

_TASK_TOPIC: Final = re.compile(r"tasks-[a-z]-\d+")
"""Topics by which releases before decision 0026 shared out tasks; nothing reads them any more."""


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """An offset of the group; ``before`` is ``None`` where it has none."""

    place: TopicPartition
    before: int | None
    after: int


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """Everything that a reset changes."""

    group: str
    offsets: tuple[OffsetChange, ...] = ()
    topics: tuple[str, ...] = ()
    """Topics to delete."""
    left_alone: tuple[str, ...] = ()
    """Topics that look like the application's own, and that its topology does not make."""
    unread: tuple[str, ...] = ()
    """Topics that the topology reads and that do not exist."""
    folder: str | None = None
    """The folder of local state to delete, if there is something in it."""
    tasks: tuple[str, ...] = field(default=())
    looked_in: str | None = None
    """The folder in which local state was looked for and not found."""
    absent_from: str | None = None
    """The brokers that know nothing of the application, of which there is no local state either."""

    def lines(self) -> Iterator[str]:
        """Yields one line for each thing that is done."""
        for change in self.offsets:
            before = "none" if change.before is None else change.before
            yield f"offset of {change.place} in group {self.group}: {before} -> {change.after}"
        for topic in self.topics:
            yield f"delete topic {topic}"
        if self.folder is not None:
            tasks = f" (tasks {', '.join(self.tasks)})" if self.tasks else ""
            yield f"delete local state in {self.folder}{tasks}"

    def notes(self) -> Iterator[str]:
        """Yields what is left as it is, or is not there, with the option that changes it.

        That there is no local state is told only where there is something else to reset.
        """
        for topic in self.unread:
            yield f"topic {topic} does not exist: its offsets are left out"
        for topic in self.left_alone:
            yield (
                f"topic {topic} is left alone: it looks like one of this application, and the topology does not make "
                f"it; --internal-topics {topic} deletes it"
            )
        if self.absent_from is not None:
            state = "" if self.looked_in is None else f", and no local state in {self.looked_in}"
            yield (
                f"nothing was found of an application {self.group}: no group and no topics on "
                f"{self.absent_from}{state}; where it has run, correct application.id, bootstrap.servers or state.dir"
            )
        elif self.looked_in is not None and any(True for _ in self.lines()):
            yield (
                f"no local state in {self.looked_in}: where workers have run on another machine or with another state "
                "directory, delete it there, by --to-current with their --state-dir, before they start"
            )


def input_partitions(plan: TopologyPlan, existing: Mapping[str, int]) -> list[TopicPartition]:
    """The partitions that users write and the group has offsets of; those of global stores have none."""
    own = own_topics(plan)
    names = {
        topic
        for part in plan.subtopologies
        for topic in existing
        if topic not in own
        and (topic in part.source_topics or any(one.fullmatch(topic) for one in part.source_patterns))
    }
    return [TopicPartition(name, number) for name in sorted(names) for number in range(existing[name])]


def unread_topics(plan: TopologyPlan, existing: Mapping[str, int]) -> tuple[str, ...]:
    """The topics of sources that do not exist."""
    named = {topic for part in plan.subtopologies for topic in part.source_topics}
    return tuple(sorted(named - own_topics(plan) - existing.keys()))


def topics_to_delete(
    plan: TopologyPlan, existing: Collection[str], named: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the topics to delete, and those that only look like the application's own.

    Names alone do not tell: ``shop-eu-counts-changelog`` is one of ``shop-eu``, and starts with ``shop-``. So only
    those go that the topology makes, old task topics, and those that the user names.

    :param named: further internal topics; ``ConfigError`` where one does not exist or is not the application's.
    """
    prefix = f"{plan.application_id}-"
    foreign = _read_or_written(plan)
    alike = {topic for topic in existing if topic.startswith(prefix) and topic not in foreign and looks_internal(topic)}
    for topic in named:
        if topic not in alike:
            raise ConfigError(
                f"topic {topic!r} is no internal topic of {plan.application_id!r} on the cluster; internal topics are "
                f"{', '.join(sorted(alike)) or 'none'}"
            )
    outdated = {
        topic
        for topic in existing
        if topic.startswith(prefix) and topic not in foreign and _TASK_TOPIC.fullmatch(topic.removeprefix(prefix))
    }
    gone = own_topics(plan).intersection(existing) | set(named) | outdated
    return tuple(sorted(gone)), tuple(sorted(alike - gone))


def own_topics(plan: TopologyPlan) -> set[str]:
    """The topics that the application makes; source topics that serve as changelogs are the user's."""
    return {topic for part in plan.subtopologies for topic in (*part.repartition_topics, *part.changelog_topics)}


def _read_or_written(plan: TopologyPlan) -> set[str]:
    named = {topic for part in plan.subtopologies for topic in (*part.source_topics, *part.sink_topics)}
    return (named | {store.topic for store in plan.global_stores}) - own_topics(plan)
