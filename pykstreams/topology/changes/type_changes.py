"""The differences of a JSON type that decide whether what was written with the old one is read with the new one.

What is read follows ``pykstreams.serdes.json.structured``: a missing field takes its default, or else ends the reading;
one that is not known is ignored. Invariant: without a difference, all that the old type wrote is read, and nothing is
lost. What validators and constraints of models refuse is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from pykstreams.serdes.json.json_types import JsonField, JsonKind, JsonType, Unknown


class Effect(StrEnum):
    """The consequence of a difference for what the old type wrote."""

    NONE = "none"
    WITHOUT = "without"
    """Values without the field are not read."""
    LOST = "lost"
    """The content of the field is not read."""
    REFUSED = "refused"
    """Values with the field are not read."""
    OTHER = "other"
    """Values of the old type may not be read."""


@dataclass(frozen=True, slots=True)
class TypeChange:
    """One difference: what it is, as text, its effect, and what to do in the type itself."""

    what: str
    effect: Effect
    cure: str


class _At(NamedTuple):
    """A type and the objects that it is in, the outermost first."""

    type: JsonType
    above: tuple[JsonType, ...]

    def resolved(self) -> _At:
        if self.type.kind is not JsonKind.ABOVE:
            return self
        index = len(self.above) - 1 - self.type.level
        return _At(self.above[index], self.above[:index])

    def inside(self, type_: JsonType) -> _At:
        is_object = self.type.kind is JsonKind.OBJECT
        return _At(type_, (*self.above, self.type) if is_object else self.above)


_Pairs = frozenset[tuple[int, int]]
"""The objects, by their identities, that are being compared: a type may contain itself."""

_READ_TOO: Final = {
    "float": ("int",),
    "Decimal": ("int", "float"),
    "str": ("Decimal", "datetime", "date", "time", "UUID"),
}
"""The other types whose JSON a simple type reads."""
_OF_VALUES: Final[dict[str, tuple[type, ...]]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def type_changes(old: JsonType, new: JsonType) -> tuple[TypeChange, ...]:
    """Returns the differences for what was written with the old type and is read with the new one."""
    found = _changes(_At(old, ()), _At(new, ()), _was("the type", old, new), frozenset())
    return tuple(dict.fromkeys(found))


def _was(where: str, old: JsonType, new: JsonType) -> TypeChange:
    return TypeChange(
        f"{where} was {old.name} and is {new.name}", Effect.OTHER, f"keep the type, or take one that reads {old.name}"
    )


def _changes(old: _At, new: _At, told: TypeChange, pairs: _Pairs) -> Iterator[TypeChange]:
    old, new = old.resolved(), new.resolved()
    before, after = old.type, new.type
    if after.kind is JsonKind.ANYTHING:
        return
    if before.kind is JsonKind.UNION:
        for part in before.parts:
            yield from _changes(old.inside(part), new, told, pairs)
    elif after.kind is JsonKind.UNION:
        yield from _changes_of_member(old, new, told, pairs)
    elif before.kind is JsonKind.OBJECT and after.kind is JsonKind.OBJECT:
        pair = (id(before), id(after))
        if pair not in pairs:
            yield from _changes_of_fields(old, new, pairs | {pair})
    elif (inner := _pairs_inside(before, after)) is not None:
        for one, other in inner:
            yield from _changes(old.inside(one), new.inside(other), told, pairs)
    elif not _reads(before, after):
        yield told


def _changes_of_member(old: _At, new: _At, told: TypeChange, pairs: _Pairs) -> Iterator[TypeChange]:
    """The differences from the member of a union that takes what was written, or else is of its kind."""
    found = [list(_changes(old, new.inside(part), told, pairs)) for part in new.type.parts]
    quiet = [one for one in found if not any(change.effect is not Effect.NONE for change in one)]
    alike = [
        one
        for one, part in zip(found, new.type.parts, strict=True)
        if new.inside(part).resolved().type.kind is old.type.kind
    ]
    if quiet:
        yield from min(quiet, key=len)
    elif len(alike) == 1:
        yield from alike[0]
    else:
        yield told


def _pairs_inside(old: JsonType, new: JsonType) -> list[tuple[JsonType, JsonType]] | None:
    """The parts of two types of a kind, or of one kind that is read as another; ``None`` for all others."""
    if old.kind is new.kind and old.kind in (JsonKind.LIST, JsonKind.DICT):
        return [(old.parts[0], new.parts[0])]
    if old.kind is JsonKind.TUPLE and new.kind is JsonKind.LIST:
        return [(part, new.parts[0]) for part in old.parts]
    if old.kind is new.kind is JsonKind.TUPLE and len(old.parts) == len(new.parts):
        return list(zip(old.parts, new.parts, strict=True))
    return None


def _reads(old: JsonType, new: JsonType) -> bool:
    """Whether a type without parts reads another."""
    if old.kind is JsonKind.VALUES:
        if new.kind is JsonKind.VALUES:
            return set(old.values) <= set(new.values)
        taken = _OF_VALUES.get(new.name, ()) if new.kind is JsonKind.SIMPLE else ()
        return all(_is_of(text, taken) for text in old.values)
    if old.kind is new.kind and old.name == new.name:
        return True
    return old.kind is new.kind is JsonKind.SIMPLE and old.name in _READ_TOO.get(new.name, ())


def _is_of(text: str, classes: tuple[type, ...]) -> bool:
    try:
        return type(json.loads(text)) in classes
    except ValueError:
        return False


def _changes_of_fields(old: _At, new: _At, pairs: _Pairs) -> Iterator[TypeChange]:
    written = {field.name: field for field in old.type.fields}
    fresh: list[JsonField] = []
    found: set[str] = set()
    for field in new.type.fields:
        source = next((written[name] for name in field.read_as if name in written), None)
        found.update((field.name,) if not field.read_as else () if source is None else (source.name,))
        if source is not None:
            yield from _changes_of_field(old, new, source, field, pairs)
        elif field.read_as:
            fresh.append(field)
    gone = [field for field in old.type.fields if field.name not in found and field.read_as]
    if new.type.unknown is not Unknown.KEPT:
        for field in gone:
            yield _gone(old, new, field, fresh, pairs)
    for field in fresh:
        where = f"field {new.type.name}.{field.name} is new"
        if field.has_default:
            yield TypeChange(where, Effect.NONE, "nothing is to be done")
        else:
            yield TypeChange(f"{where}, and has no default", Effect.WITHOUT, "give it a default")


def _changes_of_field(old: _At, new: _At, before: JsonField, after: JsonField, pairs: _Pairs) -> Iterator[TypeChange]:
    where = f"field {new.type.name}.{after.name}"
    if not after.has_default and (before.has_default or not before.always):
        yield TypeChange(
            f"{where} has no default any more",
            Effect.WITHOUT,
            "keep the default; or accept it, if the field was written from the beginning",
        )
    yield from _changes(old.inside(before.type), new.inside(after.type), _was(where, before.type, after.type), pairs)


def _gone(old: _At, new: _At, field: JsonField, fresh: list[JsonField], pairs: _Pairs) -> TypeChange:
    told = _was("", field.type, field.type)
    like = [one.name for one in fresh if not any(_changes(old.inside(field.type), new.inside(one.type), told, pairs))]
    what = f"field {old.type.name}.{field.name} is gone"
    if like:
        what += f" ({' and '.join(like)}, which may be meant to be the same, {'is' if len(like) == 1 else 'are'} new)"
    if new.type.unknown is Unknown.REFUSED:
        return TypeChange(f"{what}, and {new.type.name} refuses others", Effect.REFUSED, "keep the field")
    return TypeChange(what, Effect.LOST, "keep the field with its name; or accept the loss")
