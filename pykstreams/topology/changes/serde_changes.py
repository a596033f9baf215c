"""The effects of changed serdes, and of changed types of JSON, on rows of stores and on records in topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from pykstreams.topology.changes.change import RESET, Change, Verdict
from pykstreams.topology.changes.key_changes import key_changes
from pykstreams.topology.changes.serde_types import SerdeTypes
from pykstreams.topology.changes.shape import StoreShape, TopicShape
from pykstreams.topology.changes.type_changes import Effect, TypeChange, type_changes


class _Held(NamedTuple):
    """Things that were written with the old serdes.

    :param place: what holds them.
    :param all: all of them.
    :param word: some of them.
    :param cure: what may always be done about them.
    """

    place: str
    all: str
    word: str
    cure: str


_ROWS: Final = _Held(
    "store",
    "its rows",
    "rows",
    "stop all workers, and begin anew with 'pykstreams reset'; or give the store a new name",
)
_RECORDS: Final = _Held(
    "repartition topic",
    "records in it",
    "records in it",
    f"stop what writes the inputs and let the old one finish, then change; or {RESET}",
)


class _Side(NamedTuple):
    """The serde of keys, or of values."""

    word: str
    serde: str
    types: SerdeTypes | None


def store_serde_changes(old: StoreShape, new: StoreShape) -> Iterator[Change]:
    """Yields what changed serdes and types do to the rows of a store."""
    yield from _changes(old, new, _ROWS)
    if old.value_types is None and _have_fields(new):
        yield _not_compared(old.name)


def repartition_serde_changes(old: TopicShape, new: TopicShape) -> Iterator[Change]:
    """Yields what changed serdes and types do to the records that wait in a repartition topic."""
    yield from _changes(old, new, _RECORDS)


def input_serde_changes(old: TopicShape, new: TopicShape) -> Iterator[Change]:
    """Yields what the records of a topic that others write must have from now on."""
    for before, after in zip(_sides(old), _sides(new), strict=True):
        if _is_another_serde(before, after):
            what = [f"the {before.word} serde of the topic was {before.serde} and is {after.serde}"]
        else:
            changes = _type_changes(before, after)
            what = [
                f"{change.what}, in {before.word}s"
                for change in changes
                if change.effect not in (Effect.NONE, Effect.LOST)
            ]
        for one in what:
            yield Change(
                "moved",
                old.name,
                one,
                "see to it that the records after the committed offsets are in the new form",
                Verdict.SAFE,
            )


def _changes(old: StoreShape | TopicShape, new: StoreShape | TopicShape, held: _Held) -> Iterator[Change]:
    for before, after in zip(_sides(old), _sides(new), strict=True):
        if _is_another_serde(before, after):
            yield _broken(
                old.name,
                f"the {before.word} serde of the {held.place} was {before.serde} and is {after.serde}, and {held.all} "
                "were written with the old one",
                RESET,
            )
        else:
            yield from _changes_of_types(old.name, held, before, after)


def _sides(part: StoreShape | TopicShape) -> tuple[_Side, _Side]:
    return _Side("key", part.key_serde, part.key_types), _Side("value", part.value_serde, part.value_types)


def _is_another_serde(old: _Side, new: _Side) -> bool:
    """Whether two serdes differ in more than types of JSON, where these are known."""
    if old.types is None or new.types is None:
        return old.serde != new.serde
    return old.types.around != new.types.around or len(old.types.types) != len(new.types.types)


def _changes_of_types(where: str, held: _Held, old: _Side, new: _Side) -> Iterator[Change]:
    if old.word == "value":
        for change in _type_changes(old, new):
            yield _of_values(where, held, change)
    elif old.types is not None and new.types is not None:
        for before, after in zip(old.types.types, new.types.types, strict=True):
            for what in key_changes(before, after):
                yield _broken(
                    where,
                    f"{what}, in keys: these have other bytes now, and {held.word} have the old ones",
                    f"keep the type of keys as it was; or {held.cure}",
                )


def _type_changes(old: _Side, new: _Side) -> Iterator[TypeChange]:
    if old.types is not None and new.types is not None:
        for before, after in zip(old.types.types, new.types.types, strict=True):
            yield from type_changes(before, after)


def _of_values(where: str, held: _Held, change: TypeChange) -> Change:
    cure = f"{change.cure}; or {held.cure}"
    match change.effect:
        case Effect.NONE:
            what = f"{change.what}; {held.word} without it are read with its default"
            return Change("new", where, what, change.cure, Verdict.SAFE)
        case Effect.WITHOUT:
            return _broken(where, f"{change.what}: {held.word} without it cannot be read", cure)
        case Effect.REFUSED:
            return _broken(where, f"{change.what}: {held.word} with it cannot be read", cure)
        case Effect.LOST:
            what = f"{change.what}: what {held.word} have in it is lost with their next change"
            return Change("lost", where, what, cure, Verdict.NEEDS_RESET)
        case Effect.OTHER:
            return _broken(where, f"{change.what}: {held.word} of the old type may not be read any more", cure)


def _broken(where: str, what: str, cure: str) -> Change:
    return Change("broken", where, what, cure, Verdict.NEEDS_RESET)


def _have_fields(store: StoreShape) -> bool:
    return any(one.has_fields for side in _sides(store) if side.types is not None for one in side.types.types)


def _not_compared(name: str) -> Change:
    return Change(
        "unknown",
        name,
        "the description of the old one is of an older release, and does not tell the fields of types",
        "see to it that fields have their names and types, and that new ones have defaults; describe what runs anew "
        "with this release",
        Verdict.SAFE,
    )
