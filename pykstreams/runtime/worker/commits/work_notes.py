"""Notes in the group of which tasks are worked on: so whoever takes one up knows whether its last worker has died.

A worker that dies under at-least-once leaves changelogs that are ahead of its offsets; one that ends in good order does
not. A note is the metadata of an offset that means nothing else: that of a changelog, which no group reads. Java leaves
it alone, and so what a task takes over from Java counts as Java itself would take it, as if nobody had died.

Invariant: the note is there before a task gets its first record, and is taken away together with its last commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.topology.plan import SubtopologyPlan

_AT_WORK: Final = "at work"
_OFFSET: Final = 0


def note_place(task: TaskId, part: SubtopologyPlan) -> TopicPartition | None:
    """Where the note of a task is; ``None`` where it has no changelog of its own, and so none that could be ahead."""
    return min((TopicPartition(topic, task.partition) for topic in part.changelog_topics), default=None)


def at_work(notes: Iterable[TopicPartition]) -> Offsets:
    """The notes to commit before records of tasks are processed."""
    return dict.fromkeys(notes, (_OFFSET, _AT_WORK))


def at_rest(notes: Iterable[TopicPartition]) -> Offsets:
    """The notes to commit together with all that tasks have done."""
    return dict.fromkeys(notes, (_OFFSET, ""))


def was_left_at_work(note: TopicPartition, committed: Offsets) -> bool:
    """Returns whether the last worker of a task has died, or lost it, before it could commit all."""
    return committed.get(note, (_OFFSET, ""))[1] == _AT_WORK
