"""The stores of one task: opened or taken up as they are, read by others, committed, and let go of.

Invariants: whoever changes the stores, or which of them there are, is inside the gate of the task. A store whose rows
lie on disk in another form is set aside as it is opened, so that it begins empty, and is restored.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pykstreams.core.errors import DamagedStoreError, StoreEngineError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.tasks.context import TaskState, TaskStoreContext
from pykstreams.runtime.tasks.gate import Gate
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.runtime.tasks.stores.restored_store import RestoredStore
from pykstreams.runtime.tasks.stores.state_offsets import StateOffsets
from pykstreams.state.bulk.take_over import mark_of
from pykstreams.state.directory.damaged_stores import set_aside
from pykstreams.state.engines.disk_form import OtherFormError
from pykstreams.state.interfaces.position import PositionOf
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.topology.plan import SubtopologyPlan

log = logging.getLogger(__name__)


class TaskStores:
    """The stores of a task, which lie open in ``TaskState.stores``, in the order in which they are flushed."""

    __slots__ = (
        "_builders",
        "_clock",
        "_context",
        "_gate",
        "_initial_state",
        "_open",
        "_unreadable",
        "changelogs",
        "offsets",
    )

    def __init__(
        self,
        plan: SubtopologyPlan,
        state: TaskState,
        cache: RecordCache,
        gate: Gate,
        initial_state: InitialState,
    ) -> None:
        self._builders = plan.stores
        self._clock = state.clock
        self._context = TaskStoreContext(state, plan, cache)
        self._gate = gate
        self._initial_state = initial_state
        self._open: dict[str, TaskStore] = state.stores
        self._unreadable: set[str] = set()
        self.changelogs = {
            name: TopicPartition(topic, state.task_id.partition) for name, topic in plan.changelogs.items()
        }
        """The changelog partition of each store that has one."""
        self.offsets = StateOffsets(self.changelogs)
        """How far they are in their changelogs."""

    def prepare(self, kept: OpenStores | None) -> OpenStores | None:
        """Makes the folder ready; returns the stores of another task of this id, if they may be taken up."""
        self.offsets.clear()
        if kept is not None:
            self._open.update(kept.stores)  # to be closed here from now on, whatever goes wrong
            if self._initial_state.is_ready():
                self.offsets = kept.offsets
            else:
                kept.close()
                self._open.clear()
                kept = None
        self._initial_state.make_ready()
        return kept

    def open(self, kept: OpenStores | None, position_of: PositionOf) -> dict[TopicPartition, RestoredStore]:
        """Builds and opens them, or takes up those that ``prepare`` returned; returns those to be restored."""
        with self._gate:
            for name, builder in self._builders.items():
                store = builder.build() if kept is None else kept.stores[name]
                try:
                    self._init(name, store, position_of)
                except OtherFormError as error:
                    if name not in self.changelogs or mark_of(self._context.state_dir) is not None:
                        raise  # of a bootstrap all stores are made anew
                    self._set_aside(error)
                    store = builder.build()
                    self._init(name, store, position_of)
                if kept is None and name in self.changelogs:
                    self.offsets.opened(store, store.committed_offset())
        return {
            self.changelogs[name]: RestoredStore(store, self._gate, self._unreadable, self.offsets)
            for name, store in self._open.items()
            if name in self.changelogs
        }

    def _init(self, name: str, store: TaskStore, position_of: PositionOf) -> None:
        self._open[name] = store
        store.set_position_source(position_of)
        store.init(self._context)

    def _set_aside(self, error: OtherFormError) -> None:
        folder = set_aside(self._context.state_dir, error.store, self._clock.now_ms())
        log.warning(
            "%s. It was set aside in %r, and is restored from its changelog. That takes place once, after a change of "
            "the topology or of its settings",
            error.reason,
            str(folder),
        )

    def readable(self, name: str) -> TaskStore | None:
        """An open store, for one inside of the gate; ``None`` without one, or while it is made ready."""
        store = self._open.get(name)
        return store if store is not None and store.is_open and name not in self._unreadable else None

    def restorable(self, error: StoreEngineError) -> DamagedStoreError | None:
        """The error, if it is about a damaged store that can be restored from a changelog."""
        return error if isinstance(error, DamagedStoreError) and error.store in self.changelogs else None

    def commit(self, changelog_offsets: Mapping[TopicPartition, int], processed: Mapping[TopicPartition, int]) -> None:
        """Makes their writes durable together with the offsets of their changelogs.

        :param changelog_offsets: the next offset of each changelog partition.
        :param processed: the last offset of each input, which goes first where an input serves as a changelog.
        """
        for name, store in self._open.items():
            offset = None
            partition = self.changelogs.get(name)
            if partition is not None:
                offset = changelog_offsets.get(partition)
                if partition in processed:
                    offset = processed[partition] + 1
            store.commit(offset)
            self.offsets.note(store, offset)

    def evict_eldest(self) -> bool:
        """Evicts one entry of each cache; false when all of them are empty."""
        evicted = False
        for store in self._open.values():
            evicted |= store.evict_eldest()
        return evicted

    def leave_open(self) -> OpenStores | None:
        """Lets go of them, open as they are, for another task of this id; ``None`` if one cannot be let go."""
        stores = dict(self._open)
        if not stores or not all(store.can_be_released for store in stores.values()):
            return None
        self._open.clear()
        return OpenStores(stores, self.offsets)

    def close(self) -> dict[str, Exception]:
        """Closes them all; returns what went wrong, by the name of the store."""
        errors: dict[str, Exception] = {}
        for name, store in self._open.items():
            try:
                store.close()
            except Exception as error:
                errors[name] = error
        self._open.clear()
        return errors

    def flush_metrics(self, now_ms: int) -> None:
        """Hands what was measured to the sensors."""
        for store in self._open.copy().values():
            store.flush_metrics(now_ms)

    def cache_bytes(self) -> int:
        """The size of their record caches; may be called from any thread."""
        return sum(store.cache_bytes for store in self._open.copy().values())
