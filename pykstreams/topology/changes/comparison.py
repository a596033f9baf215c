"""The effects of a changed topology on an application that has run: a pure function over two shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final, TypeVar

from pykstreams.topology.changes.shape import StoreShape, TopicShape, TopologyShape

_NUMBER: Final = re.compile(r"\d{10}")
"""The number in a generated name, which moves when steps are added before it."""


class Verdict(StrEnum):
    """The answer to "may I start the new one?", from good to bad."""

    SAFE = "safe"
    NEEDS_NAMES = "needs names"
    NEEDS_RESET = "needs reset"


@dataclass(frozen=True, slots=True)
class Change:
    """One consequence of a change.

    :param kind: ``orphaned``, ``renamed``, ``empty``, ``broken``, ``moved``, ``new`` or ``gone``.
    :param verdict: ``SAFE`` for what is only worth knowing.
    """

    kind: str
    where: str
    what: str
    cure: str
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.what}\n    {self.cure}"

    def as_dict(self) -> dict[str, str]:
        """The change for programs."""
        return {name: str(value) for name, value in asdict(self).items()}


T = TypeVar("T", StoreShape, TopicShape)

_RESET: Final = "stop all workers, and begin anew with 'pykstreams reset'; or give it a new name"


def compare(old: TopologyShape, new: TopologyShape) -> tuple[Change, ...]:
    """Returns the consequences of starting ``new`` where ``old`` has run, nothing for equal shapes."""
    return (*_application(old, new), *_stores(old, new), *_repartition_topics(old, new), *_inputs(old, new))


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
    known = {topic.name for topic in old.inputs}
    for name, store in before.items():
        if name in after:
            yield from _store(store, after[name])
        elif name not in renamed:
            yield Change(
                "orphaned",
                name,
                "the store is gone; its changelog topic stays",
                f"delete {old.application_id}-{store.changelog} when you will not go back"
                if store.changelog is not None
                else "nothing is to be done",
                Verdict.SAFE,
            )
    for name in after.keys() - before.keys() - set(renamed.values()):
        reads = {topic.name for topic in new.inputs if topic.subtopology == after[name].subtopology}
        if seen := sorted(reads & known):
            yield Change(
                "empty",
                name,
                f"the store is new and begins empty, and what was read of {', '.join(seen)} is not read again",
                "stop all workers, and read again with 'pykstreams reset'; or accept that it begins now",
                Verdict.NEEDS_RESET,
            )
        else:
            yield Change("new", name, "the store is new", "nothing is to be done", Verdict.SAFE)


def _store(old: StoreShape, new: StoreShape) -> Iterator[Change]:
    for what, before, after in (
        ("kind", old.kind, new.kind),
        ("key serde", old.key_serde, new.key_serde),
        ("value serde", old.value_serde, new.value_serde),
    ):
        if before != after:
            yield Change(
                "broken",
                old.name,
                f"the {what} of the store was {before} and is {after}, and its rows were written with the old one",
                _RESET,
                Verdict.NEEDS_RESET,
            )
    if old.changelog != new.changelog:
        verdict = Verdict.SAFE if old.changelog is None else Verdict.NEEDS_RESET
        yield Change(
            "orphaned",
            old.name,
            f"the store was restored from {old.changelog}, and is now from {new.changelog}",
            "nothing is to be done" if old.changelog is None else f"keep the changelog as it was; or {_RESET}",
            verdict,
        )
    if old.retention_ms is not None and new.retention_ms is not None and old.retention_ms < new.retention_ms:
        yield Change(
            "broken",
            old.name,
            f"the store keeps {new.retention_ms} ms instead of {old.retention_ms}, and its changelog topic does not",
            f"raise retention.ms of the changelog topic with kafka-configs.sh, before workers start; or {_RESET}",
            Verdict.NEEDS_RESET,
        )
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
    for name, topic in before.items():
        if name not in after:
            if name not in renamed:
                yield Change(
                    "orphaned",
                    name,
                    "the repartition topic is gone; records that were not processed stay in it",
                    "stop what writes the inputs and let the old one finish, then change; delete the topic afterwards",
                    Verdict.SAFE,
                )
            continue
        other_one = after[name]
        if None not in (topic.partitions, other_one.partitions) and topic.partitions != other_one.partitions:
            yield Change(
                "broken",
                name,
                f"the repartition topic had {topic.partitions} partitions and is to have {other_one.partitions}: keys "
                "change their partitions",
                _RESET,
                Verdict.NEEDS_RESET,
            )
        for side in ("key_serde", "value_serde"):
            was, now = getattr(topic, side), getattr(other_one, side)
            if was != now:
                yield Change(
                    "broken",
                    name,
                    f"the {side.replace('_', ' ')} of the repartition topic was {was} and is {now}, and records in it "
                    "were written with the old one",
                    _RESET,
                    Verdict.NEEDS_RESET,
                )


def _inputs(old: TopologyShape, new: TopologyShape) -> Iterator[Change]:
    before, after = _by_name(old.inputs), _by_name(new.inputs)
    for name in before.keys() - after.keys():
        cure = "nothing is to be done; its offsets expire with the group's"
        yield Change("gone", name, "the topic is read no more", cure, Verdict.SAFE)
    for name in after.keys() - before.keys():
        cure = "set auto.offset.reset, or the offset reset policy of the source, to where it is to begin"
        yield Change("new", name, "the topic is read from where auto.offset.reset says", cure, Verdict.SAFE)
    for name in before.keys() & after.keys():
        for side in ("key_serde", "value_serde"):
            was, now = getattr(before[name], side), getattr(after[name], side)
            if was != now:
                yield Change(
                    "moved",
                    name,
                    f"the {side.replace('_', ' ')} of the topic was {was} and is {now}",
                    "see to it that the records after the committed offsets are in the new form",
                    Verdict.SAFE,
                )


def _moved_name(what: str, name: str, other: str) -> Change:
    return Change(
        "renamed",
        name,
        f"the {what} has a generated name, which is now {other}: what was in {name} is not found any more",
        "give its step a name (Materialized, Grouped, Joined, StreamJoined, Repartitioned), so that names do not move; "
        "to go on with what there is, let the name be the old one",
        Verdict.NEEDS_NAMES,
    )


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
