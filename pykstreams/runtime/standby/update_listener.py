"""Notices of how standby tasks are kept up, for the user (``StandbyUpdateListener``, KIP-988)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.restore.restore import StateRestoreListener


class SuspendReason(Enum):
    """Why a standby task is not kept up any more."""

    MIGRATED = "migrated"
    """It was closed: it is kept elsewhere, or the application stops, or it is opened anew."""
    PROMOTED = "promoted"
    """It becomes the active task of a worker here, which restores what is left."""


class StandbyUpdateListener:
    """Notified of how standby tasks are kept up, on the thread that does it; override what you need.

    Be quick: no standby task is kept up meanwhile. An exception ends the worker that the standby task was assigned to,
    as one of the user's functions would (``uncaught_exception_handler``); the standby tasks are opened anew.
    """

    def on_update_start(self, topic_partition: TopicPartition, store_name: str, starting_offset: int) -> None:
        """Called before the first record of a changelog is read.

        :param starting_offset: the offset at which reading begins.
        """

    def on_batch_loaded(
        self,
        topic_partition: TopicPartition,
        store_name: str,
        task_id: TaskId,
        batch_end_offset: int,
        batch_size: int,
        current_end_offset: int,
    ) -> None:
        """Called after each batch.

        :param batch_end_offset: the offset of its last record.
        :param batch_size: the number of its records.
        :param current_end_offset: the last offset of the changelog, as far as it is known.
        """

    def on_update_suspended(
        self,
        topic_partition: TopicPartition,
        store_name: str,
        store_offset: int,
        current_end_offset: int,
        reason: SuspendReason,
    ) -> None:
        """Called when a standby task ends: after its stores were closed, or before they become those of a worker.

        :param store_offset: the offset of the last record in the store; -1 where there is none.
        :param current_end_offset: the last offset of the changelog, as far as it is known.
        """


class FollowedStoreName(Protocol):
    """The part of a store that this module needs."""

    @property
    def name(self) -> str: ...


class ListenerFailedError(StreamsError):
    """The listener has raised; its task is ``task_id``."""


@dataclass(slots=True)
class _Update:
    task_id: TaskId
    store: str
    begun: bool = False
    offset: int = -1
    end: int = 0


class UpdateNotices(StateRestoreListener):
    """Makes notices of one listener out of those of the rounds in which standby tasks follow their changelogs.

    Invariant: of each store there is one start, then batches, then one end.
    """

    def __init__(self, listener: StandbyUpdateListener | None) -> None:
        self._listener = StandbyUpdateListener() if listener is None else listener
        self._updates: dict[TopicPartition, _Update] = {}

    def add(self, task_id: TaskId, stores: Mapping[TopicPartition, FollowedStoreName]) -> None:
        """Adds the stores of a standby task that has been opened."""
        self._updates.update({place: _Update(task_id, store.name) for place, store in stores.items()})

    def remove(self, task_id: TaskId, reason: SuspendReason) -> None:
        """Lets go of a standby task that has ended; tells so of its stores, of which a start was told."""
        for place in [place for place, one in self._updates.items() if one.task_id == task_id]:
            one = self._updates.pop(place)
            if one.begun:
                self._call(one, self._listener.on_update_suspended, place, one.store, one.offset, one.end - 1, reason)

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        one = self._updates[topic_partition]
        one.end = ending_offset
        if not one.begun:
            one.begun, one.offset = True, starting_offset - 1
            self._call(one, self._listener.on_update_start, topic_partition, store_name, starting_offset)

    def on_batch_restored(
        self, topic_partition: TopicPartition, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        one = self._updates[topic_partition]
        one.offset = batch_end_offset
        self._call(
            one,
            self._listener.on_batch_loaded,
            topic_partition,
            store_name,
            one.task_id,
            batch_end_offset,
            num_restored,
            one.end - 1,
        )

    def _call(self, one: _Update, notice: Callable[..., None], *facts: object) -> None:
        try:
            notice(*facts)
        except Exception as error:
            raise ListenerFailedError(
                f"{notice.__name__} of the standby_update_listener ({type(self._listener).__name__}) failed for store "
                f"{one.store!r} of task {one.task_id}: {error!r}; mend it, or catch there what may be missed",
                task_id=one.task_id,
            ) from error
