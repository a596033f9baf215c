"""Moving tasks from clients with more of them for each thread to clients with less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pykstreams.runtime.membership.assignment.shares import Share, Shares

Kind = Literal["active", "standby"]


def balance(shares: Shares, kind: Kind, may_move: Callable[[Share, Share], bool] = lambda source, target: True) -> None:
    """Moves tasks of a kind until no move makes two clients more alike.

    :param may_move: whether tasks may move from the one client to the other.
    """
    moved = True
    while moved:
        moved = False
        for source in shares.values():
            for target in shares.values():
                if source is not target and _even_out(source, target, kind, may_move):
                    moved = True


def _even_out(source: Share, target: Share, kind: Kind, may_move: Callable[[Share, Share], bool]) -> bool:
    moved = False
    for task in sorted(source.active if kind == "active" else source.standby):
        if not _would_even_out(source, target):
            break
        if target.has(task) or not may_move(source, target):
            continue
        if kind == "active":
            source.drop_active(task)
            target.add_active(task)
        else:
            source.drop_standby(task)
            target.add_standby(task)
        moved = True
    return moved


def _would_even_out(source: Share, target: Share) -> bool:
    skew = source.load - target.load
    if skew <= 0:
        return False
    after = (source.count - 1) / source.client.capacity - (target.count + 1) / target.client.capacity
    return 0 <= after < skew
