"""The effects of a changed topology on an application that has run: a pure function over two shapes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from pykstreams.core.names import SUBSCRIPTION_STORE_SUFFIX, changelog_of
from pykstreams.core.shown_values import with_noun
from pykstreams.topology.changes.change import RESET, Change, Verdict
from pykstreams.topology.changes.new_stores import SUPPRESSION, is_like, keeps_nothing, missed_topics
from pykstreams.topology.changes.serde_changes import (
    input_serde_changes,
    repartition_serde_changes,
    store_serde_changes,
)
from pykstreams.topology.changes.shape import StoreShape, TopicShape, TopologyShape
from pykstreams.topology.changes.window_changes import window_changes

_NUMBER: Final = re.compile(r"\d{10}")
"""The number in a generated name, which moves when steps are added before it."""

_ACCEPTABLE: Final = ("empty", "orphaned")

T = TypeVar("T", StoreShape, TopicShape)


def compare(old: TopologyShape, new: TopologyShape) -> tuple[Change, ...]:
    """Returns the consequences of starting ``new`` where ``old`` has run, nothing for equal shapes."""
    return (*_application(old, new), *_stores(old, new), *_repartition_topics(old, new), *_inputs(old, new))


def with_accepted(changes: tuple[Change, ...], names: Collection[str]) -> tuple[Change, ...]:
    """The changes, the worst first, of which those are safe that somebody has accepted: stores that begin empty, or are
    gone, by their names.

    What workers refuse, such as rows in another form, stays what it is.
    """
    found = (
        replace(change, cure="this was accepted", verdict=Verdict.SAFE)
        if change.kind in _ACCEPTABLE and change.where in names
        else change
        for change in changes
    )
    return tuple(sorted(found, key=lambda change: -list(Verdict).index(change.verdict)))


def verdict_of(changes: tuple[Change, ...]) -> Verdict:
    """The worst of the verdicts."""
    return max((change.verdict for change in changes), key=list(Verdict).index, default=Verdict.SAFE)


def _application(old: TopologyShape, new: TopologyShape) -> Iterator[Change]:
    if old.application_id != new.application_id:
        yield Change(
            "orphaned",
            old.application_id,
            f"the application is now {new.application_id!r}, which has no offsets, topics and state of the old one",
            "keep application.id; or let the new one begin from nothing, and reset the old one",
            Verdict.NEEDS_RESET,
        )


def _stores(old: TopologyShape, new: TopologyShape) -> Iterator[Change]:
    before, after = _by_name(old.stores), _by_name(new.stores)
    renamed = _renamed(before, after)
    for name, other in renamed.items():
        yield _moved_name("store", name, other)
        yield from _store(before[name], _under_the_name(before[name], after[other]))
    come = {name: store for name, store in after.items() if name not in before and name not in renamed.values()}
    missed = {name: topics for name, store in come.items() if (topics := missed_topics(store, old, new))}
    for name, store in before.items():
        if name in after:
            yield from _store(store, after[name])
            if not old.knows_windows and store.retention_ms is not None:
                yield _not_compared(name)
        elif name not in renamed:
            yield _orphaned(old, store, [other for other in missed if is_like(store, come[other])])
    for name in come:
        if name in missed:
            yield Change(
                "empty",
                name,
                f"the store is new and begins empty, and what was read of {', '.join(missed[name])} is not read again",
                "stop all workers, and read again with 'pykstreams reset'; or make its rows with 'pykstreams "
                f"backfill'; or accept that it begins now (diff --accept {name})",
                Verdict.NEEDS_RESET,
            )
        else:
            yield Change("new", name, "the store is new", "nothing is to be done", Verdict.SAFE)


def _orphaned(old: TopologyShape, store: StoreShape, like: list[str]) -> Change:
    """The loss of a store that is gone; a new one that is like it may be the same under another name."""
    changelog = None if store.changelog is None else f"{old.application_id}-{store.changelog}"
    if keeps_nothing(store):
        return Change("orphaned", store.name, "the store is gone", "nothing is to be done", Verdict.SAFE)
    where = "rows" if changelog is None else f"rows, which stay in {changelog}"
    if like:
        begin = "begins" if len(like) == 1 else "begin"
        return Change(
            "orphaned",
            store.name,
            f"the store is gone with its {where}; without them {begin} {' and '.join(like)}, which may be meant to be "
            "the same",
            f"{_way_to_keep(store.name)}; or begin anew with 'pykstreams reset', or make the rows with 'pykstreams "
            "backfill'",
            Verdict.NEEDS_RESET,
        )
    if store.kind == SUPPRESSION:
        return Change(
            "orphaned",
            store.name,
            f"the store is gone, and what waits in it goes on no more: its {where}",
            "let the old one run until the windows have closed, and then change; or keep the step and its name; or "
            "begin anew with 'pykstreams reset'",
            Verdict.NEEDS_RESET,
        )
    return Change(
        "orphaned",
        store.name,
        f"the store is gone with its {where}",
        "if its step is still there, keep the name; otherwise "
        + ("nothing is to be done" if changelog is None else f"delete {changelog} when you will not go back"),
        Verdict.SAFE,
    )


def _way_to_keep(name: str) -> str:
    """How the step that a store comes from goes on to give it this name."""
    if name.endswith(SUBSCRIPTION_STORE_SUFFIX):
        return f"keep name={name.removesuffix(SUBSCRIPTION_STORE_SUFFIX)!r} at the foreign-key join that it comes from"
    return (
        f"keep the name {name!r}, in the Materialized or StreamJoined of the step that it comes from, or as its name="
    )


def _not_compared(name: str) -> Change:
    return Change(
        "unknown",
        name,
        "the description of the old one is of an older release, and does not tell the definition of the windows",
        "see to it that size, advance, gap and grace are as they were; describe what runs anew with this release",
        Verdict.SAFE,
    )


def _store(old: StoreShape, new: StoreShape) -> Iterator[Change]:
    if old.kind != new.kind:
        yield Change(
            "broken",
            old.name,
            f"the kind of the store was {old.kind} and is {new.kind}, and its rows were written with the old one",
            RESET,
            Verdict.NEEDS_RESET,
        )
    yield from store_serde_changes(old, new)
    if old.changelog != new.changelog:
        verdict = Verdict.SAFE if old.changelog is None else Verdict.NEEDS_RESET
        was = "the store had no changelog" if old.changelog is None else f"the store was restored from {old.changelog}"
        now = "has none any more" if new.changelog is None else f"is restored from {new.changelog} now"
        yield Change(
            "orphaned",
            old.name,
            f"{was}, and {now}",
            "nothing is to be done" if old.changelog is None else f"keep the changelog as it was; or {RESET}",
            verdict,
        )
    yield from window_changes(old, new)
    if old.subtopology != new.subtopology:
        yield Change(
            "moved",
            old.name,
            f"the store was in sub-topology {old.subtopology} and is in {new.subtopology}, so it is restored from its "
            "changelog into another folder",
            "stop all workers before you start the new ones: a group of both does not agree on tasks",
            Verdict.SAFE if old.changelog is not None else Verdict.NEEDS_RESET,
        )


def _repartition_topics(old: TopologyShape, new: TopologyShape) -> Iterator[Change]:
    before, after = _by_name(old.repartition_topics), _by_name(new.repartition_topics)
    renamed = _renamed(before, after)
    for name, other in renamed.items():
        yield _moved_name("repartition topic", name, other)
        yield from _repartition_topic(before[name], after[other])
    for name, topic in before.items():
        if name in after:
            yield from _repartition_topic(topic, after[name])
        elif name not in renamed:
            yield Change(
                "orphaned",
                name,
                "the repartition topic is gone; records that were not processed stay in it",
                "stop what writes the inputs and let the old one finish, then change; delete the topic afterwards",
                Verdict.SAFE,
            )


def _repartition_topic(old: TopicShape, new: TopicShape) -> Iterator[Change]:
    if None not in (old.partitions, new.partitions) and old.partitions != new.partitions:
        had = with_noun(old.partitions, "partition")
        yield Change(
            "broken",
            old.name,
            f"the repartition topic had {had} and is to have {new.partitions}: keys change their partitions",
            RESET,
            Verdict.NEEDS_RESET,
        )
    yield from repartition_serde_changes(old, new)


def _inputs(old: TopologyShape, new: TopologyShape) -> Iterator[Change]:
    before, after = _by_name(old.inputs), _by_name(new.inputs)
    for name in before.keys() - after.keys():
        cure = "nothing is to be done; its offsets expire with the group's"
        yield Change("gone", name, "the topic is read no more", cure, Verdict.SAFE)
    for name in after.keys() - before.keys():
        cure = "set auto.offset.reset, or the offset reset policy of the source, to where it is to begin"
        yield Change("new", name, "the topic is read from where auto.offset.reset says", cure, Verdict.SAFE)
    for name in before.keys() & after.keys():
        yield from input_serde_changes(before[name], after[name])


def _moved_name(what: str, name: str, other: str) -> Change:
    return Change(
        "renamed",
        name,
        f"the {what} has a generated name, which is now {other}: what was in {name} is not found any more",
        "give its step a name (Materialized, Grouped, Joined, StreamJoined, Repartitioned), so that names do not move; "
        "to go on with what there is, let the name be the old one",
        Verdict.NEEDS_NAMES,
    )


def _under_the_name(old: StoreShape, new: StoreShape) -> StoreShape:
    """A store whose generated name has moved, as it is when it has been given the old one."""
    is_its_own = new.changelog == changelog_of(new.name) and old.changelog is not None
    return replace(new, name=old.name, changelog=old.changelog if is_its_own else new.changelog)


def _renamed(before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, str]:
    """Pairs what has gone with what has come where the names differ in a generated number only, in their order."""
    gone = sorted(name for name in before.keys() - after.keys() if _NUMBER.search(name))
    come = sorted(name for name in after.keys() - before.keys() if _NUMBER.search(name))
    pairs: dict[str, str] = {}
    for name in gone:
        for other in come:
            if _NUMBER.sub("#", name) == _NUMBER.sub("#", other):
                pairs[name] = other
                come.remove(other)
                break
    return pairs


def _by_name(parts: tuple[T, ...]) -> dict[str, T]:
    return {part.name: part for part in parts}
