"""Which instances keep standbys of which tasks: every instance works it out for itself, and all come to the same.

An instance is a state directory, with all processes and workers that share it: a standby beside its task would be the
same folder.

Each task ranks the instances by a hash of both names, so that an instance that comes or goes moves the standbys that
it gets or had, and few others. An instance takes a quarter more than its share at most, while others have room.

Invariant: what is placed depends on the arguments alone, and no standby is where its task is active.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from hashlib import blake2b
from math import ceil
from typing import Final

from pykstreams.core.ids import TaskId

_MOST_OF_SHARE: Final = 1.25


def place(active: Mapping[TaskId, str], instances: Collection[str], replicas: int) -> dict[TaskId, tuple[str, ...]]:
    """The instances that keep a standby of each task: ``replicas`` of them, or all others where there are fewer.

    :param active: where each task is active.

    >>> place({TaskId(0, 0): "a", TaskId(0, 1): "b"}, ["a", "b"], 1)
    {TaskId(subtopology=0, partition=0): ('b',), TaskId(subtopology=0, partition=1): ('a',)}
    """
    most = ceil(_MOST_OF_SHARE * replicas * len(active) / max(1, len(instances)))
    kept: Counter[str] = Counter()
    placed = {}
    for task in sorted(active):
        ranked = sorted((one for one in instances if one != active[task]), key=lambda one: _rank(task, one))
        # who is full comes last, and is taken only where there are not enough others
        chosen = tuple(sorted(ranked, key=lambda one: kept[one] >= most)[:replicas])
        kept.update(chosen)
        placed[task] = chosen
    return placed


def _rank(task: TaskId, instance: str) -> tuple[bytes, str]:
    return blake2b(f"{task} {instance}".encode(), digest_size=8).digest(), instance
