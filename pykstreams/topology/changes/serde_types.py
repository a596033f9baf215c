"""The JSON types of a serde, apart from the serdes around them: two types of one form may have two names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from pykstreams.core.config import StreamsConfig
from pykstreams.serdes.defaults import OverDefault, default_part
from pykstreams.serdes.json.json_keys import JsonKeySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.json.json_types import JsonData, JsonType, json_type_from

_DEPTH: Final = 4


@dataclass(frozen=True, slots=True)
class SerdeTypes:
    """The JSON types that a serde, or several of one row, writes and reads.

    :param around: the names of the serdes without those types.
    """

    around: str
    types: tuple[JsonType, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The types for JSON."""
        return {"around": self.around, "types": [one.as_dict() for one in self.types]}


def serde_types_from(data: JsonData | None) -> SerdeTypes | None:
    """Reads what ``as_dict`` has written; ``None``: not known."""
    if data is None:
        return None
    types = cast("list[JsonData]", data["types"])
    return SerdeTypes(str(data["around"]), tuple(map(json_type_from, types)))


def serde_types(given: Iterable[object], side: str, config: StreamsConfig) -> SerdeTypes:
    """Returns the types of serdes as they are given; ``None`` among them is the default of the configuration."""
    serdes = list(given)
    types = dict.fromkeys(type_ for serde in serdes for type_ in _types(_resolved(serde, side, config), _DEPTH))
    around = ", ".join(_shown(one, side, config, with_types=False) for one in serdes)
    return SerdeTypes(around, tuple(types))


def serde_name(given: object, side: str, config: StreamsConfig) -> str:
    """A name for a serde by which two of them can be told apart: its class, with those of the serdes inside."""
    return _shown(given, side, config, with_types=True)


def _shown(given: object, side: str, config: StreamsConfig, *, with_types: bool) -> str:
    """The name of a serde, with those of the serdes inside, or without what is inside serdes of JSON types."""
    resolved = _resolved(given, side, config)
    inner = "none" if resolved is None else _name(resolved, _DEPTH, with_types=with_types)
    return f"over({inner})" if isinstance(given, OverDefault) and not given.is_the_default else inner


def _resolved(given: object, side: str, config: StreamsConfig) -> object:
    if given is not None and not isinstance(given, OverDefault):
        return given
    part = default_part(given, side)
    if config[f"default.{part}.serde"] is None:
        return None
    return config.default_key_serde if part == "key" else config.default_value_serde


def _name(serde: object, depth: int, *, with_types: bool) -> str:
    kind = serde if isinstance(serde, type) else type(serde)
    if not with_types and _json_type(serde) is not None:
        return kind.__qualname__
    parts = _parts(serde) if depth and not isinstance(serde, type) else ()
    inside = sorted(_name(one, depth - 1, with_types=with_types) for one in parts)
    return kind.__qualname__ + (f"({', '.join(dict.fromkeys(inside))})" if inside else "")


def _types(serde: object, depth: int) -> Iterator[JsonType]:
    found = _json_type(serde)
    if found is not None:
        yield found
    elif depth and not isinstance(serde, type):
        for one in _parts(serde):
            yield from _types(one, depth - 1)


def _json_type(serde: object) -> JsonType | None:
    return serde.json_type if isinstance(serde, JsonSerde | JsonKeySerde) else None


def _parts(serde: object) -> Iterable[object]:
    slots = [name for kind in type(serde).__mro__ for name in getattr(kind, "__slots__", ()) if isinstance(name, str)]
    values: Mapping[str, object] = {
        **{name: getattr(serde, name, None) for name in slots if not name.startswith("__")},
        **getattr(serde, "__dict__", {}),
    }
    for value in values.values():
        is_serde = hasattr(value, "serialize") or hasattr(value, "deserialize")
        if isinstance(value, type) or (is_serde and value is not serde):
            yield value
