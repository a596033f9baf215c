"""The differences of a JSON type that give equal keys other bytes."""

from __future__ import annotations

from collections.abc import Iterator

from pykstreams.serdes.json.json_types import JsonKind, JsonType


def key_changes(old: JsonType, new: JsonType) -> tuple[str, ...]:
    """Returns the differences, as text, by which a key has other bytes; nothing where all old ones are as they were.

    Names of types and defaults of fields are in no bytes.
    """
    return tuple(dict.fromkeys(_changes(old, new, f"the type was {old.name} and is {new.name}")))


def _changes(old: JsonType, new: JsonType, told: str) -> Iterator[str]:
    if old.kind is JsonKind.UNION or new.kind is JsonKind.UNION:
        before, after = _members(old), _members(new)
        if not all(any(not any(_changes(one, other, told)) for other in after) for one in before):
            yield told
    elif old.kind is not new.kind:
        yield told
    elif old.kind is JsonKind.OBJECT:
        yield from _changes_of_fields(old, new)
    elif old.kind is JsonKind.VALUES:
        if not set(old.values) <= set(new.values):
            yield told
    elif old.kind is JsonKind.ABOVE:
        if old.level != new.level:
            yield told
    elif old.kind in (JsonKind.LIST, JsonKind.DICT, JsonKind.TUPLE):
        if len(old.parts) != len(new.parts):
            yield told
        for one, other in zip(old.parts, new.parts, strict=False):
            yield from _changes(one, other, told)
    elif old.kind is not JsonKind.ANYTHING and old.name != new.name:
        yield told


def _members(type_: JsonType) -> tuple[JsonType, ...]:
    return type_.parts if type_.kind is JsonKind.UNION else (type_,)


def _changes_of_fields(old: JsonType, new: JsonType) -> Iterator[str]:
    before = {field.name: field.type for field in old.fields}
    after = {field.name: field.type for field in new.fields}
    for name in before:
        if name not in after:
            yield f"field {old.name}.{name} is gone"
    for name in after:
        if name not in before:
            yield f"field {new.name}.{name} is new"
        else:
            where = f"field {new.name}.{name}"
            yield from _changes(before[name], after[name], f"{where} was {before[name].name} and is {after[name].name}")
    if before.keys() == after.keys() and list(before) != list(after):
        yield f"the fields of {new.name} are in another order"
