"""Keeping tasks where their state is until the clients that are to have them have caught up.

An assignor first decides where tasks are to be in the end. What would then begin on a client far behind begins on one
that has caught up instead, and the client that is to have it gets a warm-up: a standby task beyond those that are
configured. Once it has caught up, a probing rebalance finds nothing left to move.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.client_queue import ClientQueue
from pykstreams.runtime.membership.assignment.java_queue import JavaQueue
from pykstreams.runtime.membership.assignment.shares import Share, Shares
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING

_NO_LIMIT = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class _Move:
    """A task that is not to begin on the client that is to have it."""

    task: TaskId
    target: ProcessId
    caught_up: int


class Movements:
    """The movements of one decision (``TaskMovement``, 4.3.1).

    :param acceptable_lag: up to which lag a client counts as caught up.
    :param warmups: how many warm-ups there may be in the whole group.
    """

    def __init__(self, shares: Shares, stateful: Iterable[TaskId], acceptable_lag: int, warmups: int) -> None:
        self._shares = shares
        self._warmups_left = warmups
        self._warmups: defaultdict[ProcessId, set[TaskId]] = defaultdict(set)
        self._caught_up: dict[TaskId, set[ProcessId]] = {}
        self._by_lag: dict[TaskId, list[ProcessId]] = {}
        for task in stateful:
            lags = {client: share.client.lags[task] for client, share in shares.items()}
            self._caught_up[task] = {
                client
                for client, lag in lags.items()
                if lag == RUNNING or acceptable_lag == _NO_LIMIT or 0 <= lag <= acceptable_lag
            }
            self._by_lag[task] = [client for _, client in sorted((lag, client) for client, lag in lags.items())]

    def move_active(self) -> int:
        """Moves active tasks to clients that have caught up; returns how many."""
        queue = self._client_queue()
        moves = self._moves(lambda share: share.active)
        count = len(moves)
        while moves:
            self._move_active(moves.pop(), queue)
        return count

    def move_standby(self) -> int:
        """Moves standby tasks, but not warm-ups, to clients that have caught up; returns how many."""
        queue = self._client_queue()
        moves = self._moves(lambda share: share.standby - self._warmups[share.client.process_id])
        count = 0
        while moves:
            move = moves.pop()
            free = self._without(move.task)
            source = queue.take(move.task, free)
            if source is None:
                source = self._less_behind(move, free)
            if source is None:
                continue  # every client that is less far behind has the task already
            self._shares[source].add_standby(move.task)
            if not self._take_warmup():
                self._shares[move.target].drop_standby(move.task)
            queue.offer(source, move.target)
            count += 1
        return count

    def _move_active(self, move: _Move, queue: ClientQueue) -> None:
        task = move.task
        source = queue.take(task, lambda client: task in self._shares[client].standby)
        if source is None:
            source = queue.take(task)
            if source is None:
                source = self._less_behind(move, lambda _: True)
        if source is None:
            raise TaskAssignmentError(f"task {task} should start on a client with less to restore, but none is left")
        self._hand_over(task, self._shares[source], self._shares[move.target])
        queue.offer(source, move.target)

    def _hand_over(self, task: TaskId, source: Share, target: Share) -> None:
        target.drop_active(task)
        if task in source.standby:
            source.drop_standby(task)
            target.add_standby(task)
        elif self._take_warmup():
            target.add_standby(task)
            self._warmups[target.client.process_id].add(task)
        source.add_active(task)

    def _take_warmup(self) -> bool:
        self._warmups_left -= 1
        return self._warmups_left >= 0

    def _client_queue(self) -> ClientQueue:
        queue = ClientQueue(
            lambda client, task: client in self._caught_up[task], lambda client: self._shares[client].load
        )
        queue.offer(*self._shares)
        return queue

    def _moves(self, tasks: Callable[[Share], Iterable[TaskId]]) -> JavaQueue[_Move]:
        """The tasks that others are nearer to than their clients, those with the fewest to choose from first."""
        moves: JavaQueue[_Move] = JavaQueue(lambda move: (move.caught_up, move.task))
        for client, share in self._shares.items():
            for task in sorted(tasks(share)):
                if self._is_behind(task, client):
                    moves.push(_Move(task, client, len(self._caught_up[task])))
        return moves

    def _is_behind(self, task: TaskId, client: ProcessId) -> bool:
        if client in self._caught_up[task]:
            return False
        nearest = self._by_lag[task][0]
        return self._shares[nearest].client.lags[task] < self._shares[client].client.lags[task]

    def _less_behind(self, move: _Move, fits: Callable[[ProcessId], bool]) -> ProcessId | None:
        for client in self._by_lag[move.task]:
            if client == move.target:
                return None
            if fits(client):
                return client
        return None

    def _without(self, task: TaskId) -> Callable[[ProcessId], bool]:
        return lambda client: not self._shares[client].has(task)
