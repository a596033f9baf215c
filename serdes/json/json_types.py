"""The JSON of a type as plain values, which can be kept and compared after the type itself has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias, cast

JsonData: TypeAlias = Mapping[str, object]
"""An object of JSON, as it is kept."""


class JsonKind(StrEnum):
    """The sorts of JSON that a type may have."""

    ANYTHING = "anything"
    SIMPLE = "simple"
    VALUES = "values"
    OBJECT = "object"
    LIST = "list"
    TUPLE = "tuple"
    DICT = "dict"
    UNION = "union"
    ABOVE = "above"
    OTHER = "other"


class Unknown(StrEnum):
    """The fate of fields that an object has and its type does not know, when it is read."""

    IGNORED = "ignored"
    KEPT = "kept"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class JsonField:
    """A field of an object.

    :param name: as it is written.
    :param has_default: whether an object without it is read.
    :param always: whether it is written of each value.
    :param read_as: the names that it is read from, the first that is there; none: it is not read.
    """

    name: str
    type: JsonType
    has_default: bool
    always: bool
    read_as: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JsonType:
    """The JSON of one type, with all that is inside of it.

    :param name: the type as it is written.
    :param parts: members of a union, entries of a list, a tuple or a dict.
    :param fields: those of an object, in the order in which they are written.
    :param unknown: what an object does with other fields.
    :param values: the texts of all values that there are, in JSON.
    :param level: how many objects above the one is that the type is again.
    """

    kind: JsonKind
    name: str
    parts: tuple[JsonType, ...] = ()
    fields: tuple[JsonField, ...] = ()
    unknown: Unknown = Unknown.IGNORED
    values: tuple[str, ...] = ()
    level: int = 0

    @property
    def has_fields(self) -> bool:
        """Whether it is an object, or has one inside."""
        return self.kind is JsonKind.OBJECT or any(part.has_fields for part in self.parts)

    def sorted(self) -> JsonType:
        """The type whose objects have their fields in the order of their names."""
        fields = sorted(self.fields, key=lambda field: field.name)
        return replace(
            self,
            parts=tuple(part.sorted() for part in self.parts),
            fields=tuple(replace(field, type=field.type.sorted()) for field in fields),
        )

    def as_dict(self) -> dict[str, object]:
        """The type for JSON, without what a type of its kind does not have."""
        found: dict[str, object] = {"kind": str(self.kind), "name": self.name}
        if self.parts:
            found["parts"] = [part.as_dict() for part in self.parts]
        if self.kind is JsonKind.OBJECT:
            found["fields"] = [
                {
                    "name": field.name,
                    "type": field.type.as_dict(),
                    "has_default": field.has_default,
                    "always": field.always,
                    "read_as": list(field.read_as),
                }
                for field in self.fields
            ]
            found["unknown"] = str(self.unknown)
        if self.kind is JsonKind.VALUES:
            found["values"] = list(self.values)
        if self.kind is JsonKind.ABOVE:
            found["level"] = self.level
        return found


def json_type_from(data: JsonData) -> JsonType:
    """Reads what ``as_dict`` has written; ``KeyError``, ``TypeError`` or ``ValueError`` for anything else."""
    return JsonType(
        JsonKind(str(data["kind"])),
        str(data["name"]),
        tuple(map(json_type_from, _entries(data, "parts"))),
        tuple(map(_field_from, _entries(data, "fields"))),
        Unknown(str(data.get("unknown", Unknown.IGNORED))),
        _texts(data.get("values", ())),
        int(cast("int", data.get("level", 0))),
    )


def _field_from(data: JsonData) -> JsonField:
    type_ = json_type_from(cast("JsonData", data["type"]))
    return JsonField(str(data["name"]), type_, bool(data["has_default"]), bool(data["always"]), _texts(data["read_as"]))


def _entries(data: JsonData, name: str) -> list[JsonData]:
    return cast("list[JsonData]", data.get(name, []))


def _texts(data: object) -> tuple[str, ...]:
    return tuple(map(str, cast("list[object]", data)))
