"""Commits: state, results and offsets move forward together, at least once or exactly once.

The order under at-least-once: caches are flushed and everything is delivered; the offsets are committed; then, and
only then, state is written with the changelog offset it stands for. A crash between two steps repeats work and loses
none. Under exactly-once results and offsets are one transaction, and state follows it.

Invariant: state on disk never stands for a changelog offset whose records were not delivered.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError, ClusterUnavailableError, TaskMigratedError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.membership.membership import Membership, is_surely_in
from pykstreams.runtime.worker.commits.work_notes import at_rest, at_work

log = logging.getLogger(__name__)

RECOMMIT_INTERVAL_MS = 3_600_000
"""How often offsets of idle partitions are committed again: brokers forget those of topics without subscription."""


_PART_OF_TIMEOUT = 0.6
_START_S = 3.0
"""How long the start of transactions waits for its coordinator at a time; nobody is served meanwhile."""


class CommittableTask(Protocol):
    """The methods of a task that a commit calls."""

    @property
    def commit_needed(self) -> bool: ...

    @property
    def replays(self) -> bool: ...

    def prepare_commit(self) -> Offsets: ...

    def post_commit(self, changelog_offsets: Mapping[TopicPartition, int]) -> None: ...


class Deliveries(Protocol):
    """The methods of the collector that a commit calls."""

    @property
    def broken(self) -> bool:
        """Whether the producer can take nothing any more."""
        ...

    def flush(self) -> None: ...

    def clear(self) -> None: ...


class Transactions(Protocol):
    """The methods of the producer that exactly-once calls."""

    @property
    def broken(self) -> bool:
        """Whether it can do nothing any more, whatever it is asked."""
        ...

    def start_transactions(self, timeout_s: float) -> None: ...

    def begin(self) -> None: ...

    def commit(self, offsets: Offsets, group_metadata: bytes) -> None: ...

    def abort(self) -> bool: ...


@dataclass(slots=True)
class Committable:
    """A started task with what it reads, the changelogs of its stores and what was committed for it last."""

    task: CommittableTask
    inputs: frozenset[TopicPartition]
    changelogs: frozenset[TopicPartition]
    committed: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)
    note: TopicPartition | None = None
    """Where it is noted that the task is worked on, if it is."""


class Commits(Protocol):
    """A way to commit; one object per worker and producer."""

    def prepare(self) -> None:
        """Call it before tasks are opened; ``ClusterUnavailableError``: the cluster does not answer, call it again."""
        ...

    def before_processing(self) -> None:
        """Call it before anything is processed."""
        ...

    def commit(self, tasks: Collection[Committable]) -> bool:
        """Commits tasks; false: nothing was committed, try again soon."""
        ...

    def commit_all(self, tasks: Collection[Committable]) -> bool:
        """Commits all tasks of the worker, now and then also offsets that have not moved."""
        ...

    def commit_last(self, tasks: Collection[Committable]) -> bool:
        """Commits tasks that end, and that they have ended in good order."""
        ...

    def abort(self) -> bool:
        """Aborts what was not committed; false when the producer cannot be used any more."""
        ...


class CommitSteps:
    """The steps that both guarantees have in common.

    :param between: who looks in between two tasks: flushing the caches of one may take as long as many batches.
    """

    def __init__(
        self,
        *,
        deliveries: Deliveries,
        membership: Membership,
        end_offsets: Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]],
        on_committed: Callable[[Offsets], None],
        clock: Clock,
        outage: Outage,
        recommit_interval_ms: int = RECOMMIT_INTERVAL_MS,
        between: BetweenBatches | None = None,
    ) -> None:
        self._between = between or BetweenBatches()
        self.deliveries = deliveries
        self.membership = membership
        self._end_offsets = end_offsets
        self._on_committed = on_committed
        self._clock = clock
        self._outage = outage
        self._ends_unknown = RepeatedWarnings(log, clock)
        self._recommit_interval_s = recommit_interval_ms / 1000
        self._recommit_at = clock.monotonic() + self._recommit_interval_s

    def prepare(self, tasks: Collection[Committable]) -> dict[TopicPartition, tuple[int, str]] | None:
        """Flushes caches, waits for deliveries, and returns the offsets; ``None`` when not all was delivered yet."""
        offsets: dict[TopicPartition, tuple[int, str]] = {}
        for one in tasks:
            offsets.update(one.task.prepare_commit())
            self._between.look()
        try:
            self.deliveries.flush()
        except ClusterUnavailableError as error:
            self._outage.failed(error)
            return None
        return offsets

    def offsets_of_idle_partitions(self, tasks: Collection[Committable]) -> dict[TopicPartition, tuple[int, str]]:
        """The offsets to commit once more, which is nothing most of the time."""
        if self._clock.monotonic() < self._recommit_at:
            return {}
        notes = at_work([one.note for one in tasks if one.note is not None])
        return {**notes, **{partition: found for one in tasks for partition, found in one.committed.items()}}

    def committed(self, tasks: Collection[Committable], offsets: Offsets) -> None:
        """Makes state durable once the offsets are."""
        self._outage.over()
        self._on_committed(offsets)
        ends = self._ends({place for one in tasks for place in one.changelogs - one.inputs})
        for one in tasks:
            one.committed.update({place: offsets[place] for place in one.inputs if place in offsets})
            # a source topic that serves as changelog: its store stands for what was read of it
            read = {place: one.committed[place][0] for place in one.changelogs if place in one.committed}
            written = {place: ends[place] for place in one.changelogs if place in ends}
            one.task.post_commit({**written, **read})
            self._between.look()

    def recommitted(self) -> None:
        self._recommit_at = self._clock.monotonic() + self._recommit_interval_s

    def refused(self) -> None:
        """Counts how long commits have been refused; ``ClusterError`` after ``task.timeout.ms``."""
        self._outage.failed("the group's coordinator does not take the offsets")

    def _ends(self, changelogs: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where changelogs end, as long as only this worker can have written to them; else nothing."""
        try:
            ends = self._end_offsets(changelogs)
            return ends if is_surely_in(self.membership) else {}
        except ClusterError as error:
            # state without a new offset is right, too: more of the changelog is read again after a restart
            self._ends_unknown.warn(
                "ends", "the ends of changelogs are unknown, so state keeps its old offsets: %s", error
            )
            return {}


class _OverSteps(ABC):
    """The way to commit over steps, whatever is guaranteed."""

    def __init__(self, steps: CommitSteps) -> None:
        self._steps = steps

    def commit(self, tasks: Collection[Committable]) -> bool:
        return self._commit(tasks, {})

    def commit_all(self, tasks: Collection[Committable]) -> bool:
        idle = self._steps.offsets_of_idle_partitions(tasks)
        done = self._commit(tasks, idle)
        if done and idle:
            self._steps.recommitted()
        return done

    @abstractmethod
    def _commit(self, tasks: Collection[Committable], more: Offsets) -> bool:
        """Commits tasks, and further offsets with theirs."""


class AtLeastOnce(_OverSteps):
    """Commits after everything was delivered; work since the last commit is done again after a crash."""

    def prepare(self) -> None:
        """Nothing needs to be prepared."""

    def before_processing(self) -> None:
        """Nothing needs to be begun."""

    def commit_last(self, tasks: Collection[Committable]) -> bool:
        # one that replays what a dead worker did has not come to its end: the next worker goes on replaying
        return self._commit(
            tasks, at_rest([one.note for one in tasks if one.note is not None and not one.task.replays])
        )

    def abort(self) -> bool:
        usable = not self._steps.deliveries.broken
        self._steps.deliveries.clear()
        return usable

    def _commit(self, tasks: Collection[Committable], more: Offsets) -> bool:
        due = [one for one in tasks if one.task.commit_needed]
        if not due and not more:
            return True
        prepared = self._steps.prepare(due)
        if prepared is None:
            return False
        offsets = {**more, **prepared}
        if not self._steps.membership.commit(offsets):
            self._steps.refused()
            return False
        self._steps.committed(due, offsets)
        return True


class ExactlyOnce(_OverSteps):
    """One transaction for everything that a worker does between two commits.

    A transaction that is not delivered in time is given up before the brokers roll it back by themselves, after which
    nothing may be sent for it any more.

    :param transaction_timeout_ms: after which time they do (``transaction.timeout.ms`` of the producer).
    """

    def __init__(self, steps: CommitSteps, producer: Transactions, clock: Clock, transaction_timeout_ms: int) -> None:
        super().__init__(steps)
        self._producer = producer
        self._clock = clock
        self._patience_s = transaction_timeout_ms / 1000 * _PART_OF_TIMEOUT
        self._waits_since: float | None = None
        self._started = False
        self._open = False

    def prepare(self) -> None:
        if not self._started:
            self._producer.start_transactions(_START_S)
            self._started = True

    def before_processing(self) -> None:
        if not self._open:
            self._producer.begin()
            self._open = True

    def commit_last(self, tasks: Collection[Committable]) -> bool:
        return self._commit(tasks, {})

    def abort(self) -> bool:
        broken = self._steps.deliveries.broken or self._producer.broken
        usable = not broken and (not self._open or self._producer.abort())
        self._open = False
        self._waits_since = None
        self._steps.deliveries.clear()
        return usable

    def _commit(self, tasks: Collection[Committable], more: Offsets) -> bool:
        due = [one for one in tasks if one.task.commit_needed]
        if not due and not more:
            return True
        self.before_processing()
        since = self._waits_since = self._clock.monotonic() if self._waits_since is None else self._waits_since
        prepared = self._steps.prepare(due)
        if prepared is None:
            if (waited_s := self._clock.monotonic() - since) > self._patience_s:
                raise TaskMigratedError(
                    f"the records of a transaction were not delivered within {waited_s:.1f} s, and the brokers roll it "
                    "back soon (transaction.timeout.ms)"
                )
            return False
        self._waits_since = None
        offsets = {**more, **prepared}
        self._producer.commit(offsets, self._steps.membership.transaction_metadata())
        self._open = False
        self._steps.committed(due, offsets)
        return True
