"""The stores of a task that has ended, open as they are, on their way to another task of the same id in this process.

Kafka Streams calls it recycling: a standby task becomes the active one, or an active task a standby, and nothing is
read again, in memory neither.

Invariant: nothing was done to the stores since their last commit, and they belong to one task at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pykstreams.runtime.tasks.stores.state_offsets import StateOffsets
from pykstreams.state.interfaces.store import TaskStore


@dataclass(frozen=True, slots=True)
class OpenStores:
    """Stores by name, and how far they are in their changelogs: those in memory know nowhere else."""

    stores: Mapping[str, TaskStore]
    offsets: StateOffsets

    def close(self) -> None:
        """Closes them all, whatever one of them raises; raises the first error."""
        errors = []
        for store in self.stores.values():
            try:
                store.close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
