"""Joins of two versioned tables of which every older result stays right, whatever comes late.

A change of one side is valid from its time until another one has replaced it. In that time the other side may have
changed any number of times, so that a change gives one result for each of these times; the results that were there
before are what is to be corrected, and are read from the store of the joined table.

Invariant: between its changes, the joined table is at each time the join of what both sides were at that time, for all
times that both sides and the joined table itself can still be read at. A result is valid since the larger timestamp of
both rows, or since the deletion of one of them, or else since the first of these times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Change, Headers, ValueJoiner
from pykstreams.processors.drop_reasons import NULL_KEY_OF_ROW_TO_JOIN
from pykstreams.processors.process import Process
from pykstreams.processors.stores import versioned_rows
from pykstreams.processors.tables.table_forwarding import kept_rows
from pykstreams.processors.tables.table_view import TableView, history_of
from pykstreams.state.interfaces.operator_stores import VersionedRows

K = TypeVar("K")
V1 = TypeVar("V1")
V2 = TypeVar("V2")
VR = TypeVar("VR")


@dataclass(frozen=True, slots=True)
class CompleteJoin(Generic[K, V1, V2, VR]):
    """Joins each change of one side with all that the other side was while the change is valid.

    ``this`` and ``other`` are the sides, ``store`` keeps the joined table. A result is forwarded even if it equals the
    one before, a deletion only where there was a result. ``None`` from the joiner is no result.

    A change is dropped without key, and if it was replaced before any time that the joined table keeps, or at which the
    other side is known. What is forwarded carries no old values: the merger knows them.
    """

    this: TableView[K, V1]
    other: TableView[K, V2]
    store: str
    joiner: ValueJoiner[V1 | None, V2 | None, VR | None]
    this_is_optional: bool
    other_is_optional: bool

    def build(self, context: OperatorContext) -> Process:
        end_of_change, read_other = history_of(self.this, context).end, history_of(self.other, context).between
        store: VersionedRows[K, VR] = versioned_rows(context, self.store)
        read_joined, oldest_time = store.get_timeline, store.oldest_time
        joiner, this_is_optional, other_is_optional = self.joiner, self.this_is_optional, self.other_is_optional
        forward, fail, drop = context.current.following(context.forward), context.fail, context.drop

        def joined(new: V1 | None, other: V2 | None) -> VR | None:
            if (new is None and (other is None or not this_is_optional)) or (other is None and not other_is_optional):
                return None
            return joiner(new, other)

        def results(key: K, new: V1 | None, start: int, end: int | None) -> list[tuple[int, VR | None]]:
            """The joined table as it has to be from ``start``, or from where the other side is known, to ``end``."""
            if end is not None and end <= start:
                return []
            if new is None and not this_is_optional:
                return [(start, None)]
            others = read_other(key, start, _LAST_TIME if end is None else end - 1)
            return [(max(since, start), joined(new, other)) for since, other in others]

        def process(key: K, change: Change[V1], timestamp: int, headers: Headers) -> None:
            if key is None:
                drop(NULL_KEY_OF_ROW_TO_JOIN)
                return
            new, _, newest = change
            try:
                end = None if newest else end_of_change(key, timestamp)
                wanted = results(key, new, max(timestamp, oldest_time()), end)
                if wanted:
                    found = read_joined(key, wanted[0][0], _LAST_TIME if end is None else end)
                    wanted = list(corrections(wanted, end, found))
                else:
                    drop(_BEFORE_HISTORY)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            for time, value in wanted:
                forward(key, (value, None, newest), time, headers)

        return process


@dataclass(frozen=True, slots=True)
class CompleteJoinMerger:
    """Keeps the results of both sides and forwards them; the old value of a change is the newest one before it."""

    store: str
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        return kept_rows(lambda key, value: value, self.store, self.send_old_values, context)


def corrections(
    wanted: list[tuple[int, VR | None]], end: int | None, found: list[tuple[int, VR | None]]
) -> Iterator[tuple[int, VR | None]]:
    """Yields, in order of time, the versions that make a versioned row as wanted up to ``end``, and then as before.

    Wanted and found are (since, value, ``None`` for none), each valid until the next one; what is wanted begins not
    before what was found. Each wanted value is put; and so it is again where the row had a version that is not
    wanted, since versions cannot be taken away.
    """
    goals, versions = dict(wanted), dict(found)
    goal = before = now = None  # what is wanted, what the row was, and what it is after what was put so far
    for time in sorted(goals.keys() | versions.keys()):
        if time in versions:
            before = now = versions[time]
        if time == end:
            return
        if time < wanted[0][0]:
            continue
        goal = goals.get(time, goal)
        if goal is not None or now is not None:
            yield time, goal
            now = goal
    if end is not None and now is not before:
        yield end, before


_LAST_TIME: Final = 2**63 - 1
_BEFORE_HISTORY: Final = (
    "the change of a joined row was replaced before all times that the joined table keeps, or the other table can be "
    "read at; give their stores a longer history retention if such changes matter"
)
