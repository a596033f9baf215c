"""The serdes of Python types: what a type stands for where a serde is expected.

``str`` is text, ``int`` a long, ``float`` a double, ``bool``, ``bytes``, ``UUID`` and ``None`` are what ``Serdes`` has
for them; times and ``Decimal`` are text; what has parts is JSON: dataclasses, pydantic models, msgspec structs,
``TypedDict``, ``list``, ``dict``, ``tuple``, ``Literal``, enumerations and unions. ``Optional`` adds nothing, since
each serde writes ``None`` as nothing.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Protocol, TypeAlias, TypeGuard, TypeVar, cast, runtime_checkable
from uuid import UUID

from pykstreams.core.windows import Windowed
from pykstreams.serdes.base import AnySerde, CompiledSerde, Serde, describe, resolve_serde, write_same_bytes
from pykstreams.serdes.combined_key import CombinedKey, CombinedKeySerde
from pykstreams.serdes.composed_keys import PrefixChecked
from pykstreams.serdes.json.field_types import dataclass_of, typed_dict_of
from pykstreams.serdes.json.json_keys import JsonKeySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.json.models import is_pydantic, is_struct
from pykstreams.serdes.json.union_members import members_of, name_of_type, without_alias
from pykstreams.serdes.list_serde import ListSerde
from pykstreams.serdes.optional import OptionalSerde
from pykstreams.serdes.primitives import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UUIDSerde,
    VoidSerde,
)
from pykstreams.serdes.text_values import TextSerde
from pykstreams.serdes.told_topic import ToldTopic
from pykstreams.serdes.windowed import (
    SessionWindowedDeserializer,
    SessionWindowedSerde,
    SessionWindowedSerializer,
    TimeWindowedDeserializer,
    TimeWindowedSerde,
    TimeWindowedSerializer,
)

T = TypeVar("T")

SerdeOrType: TypeAlias = Serde[T] | type[T]
"""A serde, or the type whose serde is meant (``pykstreams.types.register``)."""

_SIMPLE: Mapping[object, Callable[[], AnySerde]] = {
    str: StringSerde,
    bytes: BytesSerde,
    int: LongSerde,
    float: DoubleSerde,
    bool: BooleanSerde,
    UUID: UUIDSerde,
    types.NoneType: VoidSerde,
}
_READ: Mapping[type[object], type[object]] = {
    StringSerde: str,
    BytesSerde: bytes,
    **dict.fromkeys((ShortSerde, IntegerSerde, LongSerde), int),
    **dict.fromkeys((FloatSerde, DoubleSerde), float),
    BooleanSerde: bool,
    UUIDSerde: UUID,
    CombinedKeySerde: CombinedKey,
    ListSerde: list,
}
"""The types that serdes of this project read, for those that were given as serdes."""
_WINDOWED = (
    TimeWindowedSerde,
    TimeWindowedSerializer,
    TimeWindowedDeserializer,
    SessionWindowedSerde,
    SessionWindowedSerializer,
    SessionWindowedDeserializer,
)
_TEXTS = (datetime, date, time, Decimal)
ANYTHING = (typing.Any, object)
"""Types that say nothing of their values."""

_CURE = "register one, types.register({type}, serde), or give a serde"


@runtime_checkable
class SerdeMarker(Protocol):
    """Something in ``Annotated[T, marker]`` that makes the serde of ``T``; a serde itself will do, too."""

    def serde_for(self, type_: type[T], /) -> Serde[T]:
        """Returns the serde of that type."""
        ...


class TypeSerdes:
    """The serdes of types: those that were registered, and those that every type of some kind has."""

    def __init__(self) -> None:
        self._registered: dict[object, AnySerde] = {}
        self._made: dict[tuple[object, bool], AnySerde] = {}
        self._known: dict[int, tuple[AnySerde, object]] = {}
        """Each serde that was ever registered or made here, with its type, by its identity."""

    def register(self, type_: type[T], serde: Serde[T]) -> None:
        """Has a type written and read by that serde, as key and as value, wherever the type stands for a serde.

        The last one registered counts, for what is built afterwards. Raises ``ConfigError`` for an object that is no
        serde.
        """
        found = self._registered[type_] = resolve_serde(serde)
        self._known[id(found)] = (found, type_)
        self._made.clear()

    def is_registered(self, type_: object) -> bool:
        """Whether a serde was registered for a type."""
        return _is_hashable(type_) and type_ in self._registered

    def serde(self, type_: type[T], *, is_key: bool = False) -> Serde[T]:
        """Returns the serde of a type, the same object each time; JSON and text have one form for equal keys.

        Raises ``TypeError`` for a type that has none, with the cure.
        """
        found = self._registered.get(type_) if _is_hashable(type_) else None
        if found is not None:
            return found
        made = self._made.get((type_, is_key)) if _is_hashable(type_) else None
        if made is None:
            made = self._new(type_, is_key)
            self._known.setdefault(id(made), (made, type_))  # ``T | None`` has the serde of ``T``
            if _is_hashable(type_):
                self._made[type_, is_key] = made
        return made

    def for_keys(self, serde: Serde[T]) -> Serde[T]:
        """Returns the serde that keys of the same type have, for one that was made here for values; any other as it is.

        So keys of a type have one form, whether the type is given or what ``Serdes.for_type`` returns for it.
        """
        known = self._known.get(id(serde))
        if known is None or not isinstance(serde, JsonSerde | TextSerde):
            return serde
        type_ = cast("type[T]", known[1])
        if self.is_registered(type_):
            return serde
        of_keys = self.serde(type_, is_key=True)
        return serde if write_same_bytes(serde, of_keys) else of_keys

    def is_made_of_types(self, serde: object) -> bool:
        """Whether a serde stands for a type, or is of serdes that do, as that of windowed keys."""
        if isinstance(serde, TimeWindowedSerde | SessionWindowedSerde | OptionalSerde):
            return self.is_made_of_types(serde.inner)
        if isinstance(serde, CombinedKeySerde):
            return self.is_made_of_types(serde.prefix) and self.is_made_of_types(serde.suffix)
        return id(serde) in self._known

    def type_of(self, serde: object) -> object:
        """Returns the type of what a serde reads and writes; ``object`` where that is not known.

        >>> types = TypeSerdes()
        >>> types.type_of(types.serde(dict[str, int])), types.type_of(IntegerSerde()), types.type_of(JsonSerde())
        (dict[str, int], <class 'int'>, <class 'object'>)
        """
        if isinstance(serde, _WINDOWED):
            return Windowed
        if isinstance(serde, ToldTopic | PrefixChecked | OptionalSerde):
            return self.type_of(serde.inner)
        known = self._known.get(id(serde))
        if known is not None:
            return known[1]
        if type(serde) in (JsonSerde, JsonKeySerde, TextSerde):
            return cast("JsonSerde[object]", serde).type_ or object
        return _READ.get(type(serde), object)

    def name_of(self, serde: object) -> str:
        """Returns what a serde, a serializer or a deserializer stands for: the type, else how it is made.

        >>> types = TypeSerdes()
        >>> types.name_of(types.serde(dict[str, int])), types.name_of(LongSerde()), types.name_of(JsonSerde())
        ('dict[str, int]', 'int', 'JsonSerde()')
        """
        if isinstance(serde, _WINDOWED):
            return f"Windowed[{self.name_of(serde.inner)}]"
        if isinstance(serde, ToldTopic | PrefixChecked):
            return self.name_of(serde.inner)
        if isinstance(serde, OptionalSerde):
            return f"{self.name_of(serde.inner)} | None"
        known = self._known.get(id(serde))
        if known is not None:
            return type_name(known[1])
        if inner := _inner_serdes(serde):
            name = "list" if isinstance(serde, ListSerde) else type(serde).__name__.removesuffix("Serde")
            return f"{name}[{', '.join(map(self.name_of, inner))}]"
        return next((type_name(one) for one in _SIMPLE if _is_that_of(one, serde)), describe(serde))

    def _new(self, type_: object, is_key: bool) -> AnySerde:
        if (found := without_alias(type_)) is not type_:
            return self.serde(cast("type[object]", found), is_key=is_key)
        origin, arguments = typing.get_origin(type_), typing.get_args(type_)
        if origin is typing.Annotated:
            return _marked(type_) or self.serde(arguments[0], is_key=is_key)
        if isinstance(type_, typing.NewType):
            return self.serde(cast("type[object]", type_.__supertype__), is_key=is_key)
        if origin in (typing.Union, types.UnionType):
            there = tuple(one for one in arguments if one is not types.NoneType)
            if len(there) == 1:
                return self.serde(there[0], is_key=is_key)
        if origin is Windowed or type_ is Windowed:
            raise TypeError(_lacking_windows(type_, arguments))
        if origin is CombinedKey:
            return CombinedKeySerde(*(self.serde(one, is_key=True) for one in arguments))
        if (simple := _SIMPLE.get(type_)) is not None:
            return simple()
        if type_ in _TEXTS:
            return TextSerde(type_, is_key=is_key)
        return _json(type_, is_key)


def _inner_serdes(serde: object) -> list[object]:
    """The serdes that one of this project is made of; those of users are shown as they are."""
    if not isinstance(serde, CompiledSerde) or not dataclasses.is_dataclass(serde):
        return []
    if not type(serde).__module__.startswith("pykstreams."):
        return []
    return [one for field in dataclasses.fields(serde) if isinstance(one := getattr(serde, field.name), Serde)]


def _is_that_of(type_: object, serde: object) -> bool:
    """Whether a serde is as that of a simple type, although it was given as a serde."""
    made = _SIMPLE[type_]()
    return type(made) is type(serde) and repr(made) == repr(serde)


TYPES = TypeSerdes()
"""The serdes of types in this process."""


def _marked(annotated: object) -> AnySerde | None:
    type_, *markers = typing.get_args(annotated)
    for marker in markers:
        if typing.get_origin(marker) is typing.Annotated and (found := _marked(marker)) is not None:
            return found
        if isinstance(marker, SerdeMarker):
            return marker.serde_for(type_)
        if isinstance(marker, Serde) and not isinstance(marker, type):
            return marker
    return None


def _json(type_: object, is_key: bool) -> AnySerde:
    if not _is_json(type_):
        name = type_name(type_)
        own_class = f"make a class of it, class Name({name}), " if is_struct(typing.get_origin(type_)) else ""
        raise TypeError(f"there is no serde for {name}{_why(type_)}; {own_class}{_CURE.format(type=name)}")
    json_type = cast("type[object]", type_)
    return JsonKeySerde(json_type) if is_key else JsonSerde(json_type)


def _lacking_windows(type_: object, of_keys: tuple[object, ...]) -> str:
    inner = type_name(of_keys[0]) if of_keys else "type of the keys"
    return (
        f"there is no serde for {type_name(type_)}, since a type does not tell how long its windows are; leave it out "
        f"where a table in windows is written, whose keys have theirs, or give WindowedSerdes.time_windowed({inner}, "
        f"size), with the size of the windows, or WindowedSerdes.session_windowed({inner})"
    )


def type_name(type_: object) -> str:
    """Returns a type as it is written, without the modules that it is from."""
    if isinstance(type_, type | TypeVar | typing.NewType) and not typing.get_args(type_):
        return str(type_.__name__)
    if typing.get_origin(type_) is typing.Annotated:
        inner, *markers = typing.get_args(type_)
        said = [repr(one) for one in markers if isinstance(one, SerdeMarker | Serde)]
        return f"Annotated[{', '.join((type_name(inner), *said))}]" if said else type_name(inner)
    return name_of_type(type_)


def rules_out_none(type_: object) -> bool:
    """Whether a type is known not to have ``None`` among its values.

    >>> rules_out_none(list[int]), rules_out_none(int | None), rules_out_none(object)
    (True, False, False)
    """
    return all(map(_is_never_none, members_of(type_)))


def _is_never_none(type_: object) -> bool:
    origin = typing.get_origin(type_) or type_
    if origin is typing.Literal:
        return None not in typing.get_args(type_)
    if typing.is_typeddict(origin):
        return True
    try:
        return isinstance(origin, type) and not isinstance(None, origin)
    except TypeError:  # ``Any``, and protocols that nobody can be asked about
        return False


def _is_json(type_: object) -> bool:
    origin = typing.get_origin(type_) or type_
    if dataclass_of(type_) is not None or typed_dict_of(type_) is not None:
        return True
    if origin in (list, dict, tuple, Sequence, Mapping, typing.Union, types.UnionType, typing.Literal):
        return True
    if not isinstance(type_, type):
        return False
    return is_pydantic(type_) or is_struct(type_) or issubclass(type_, Enum)


def _why(type_: object) -> str:
    if type_ in ANYTHING or isinstance(type_, TypeVar):
        return ", which may be anything"
    if hasattr(type_, "DESCRIPTOR"):
        return ", whose schema may come from a registry (SchemaRegistryProtobufSerde)"
    return ""


def is_like_a_serde(given: object) -> bool:
    """Whether an object, or a class, has what a serde has, or a part of it."""
    return any(hasattr(given, part) for part in ("serialize", "serializer", "deserialize", "deserializer"))


def is_type(given: object) -> TypeGuard[type[object]]:
    """Whether an object is a type, or an annotation that stands for one; a class of serdes is none."""
    if isinstance(given, type):
        return not is_like_a_serde(given)
    if typing.get_origin(given) is not None or without_alias(given) is not given:
        return True
    return isinstance(given, typing.NewType | TypeVar) or given in ANYTHING


def given_serde(given: SerdeOrType[T] | None, *, is_key: bool) -> Serde[T] | None:
    """Returns the serde that was given, or that of the type; raises ``TypeError`` for a type that has none."""
    if is_type(given):
        return TYPES.serde(cast("type[T]", given), is_key=is_key)
    serde = cast("Serde[T] | None", given)
    return TYPES.for_keys(serde) if is_key and serde is not None else serde


def inner_serde(given: SerdeOrType[T], *, is_key: bool) -> Serde[T]:
    """Returns the same for a serde around it; raises ``TypeError`` for what is neither a serde nor a type, too."""
    serde = given_serde(given, is_key=is_key)
    if serde is None or not is_like_a_serde(serde):
        raise TypeError(f"inner is {given!r}; expected a type, such as str, or a serde")
    return serde


def _is_hashable(type_: object) -> bool:
    """Whether a type can be looked up; one that is annotated with a list, say, cannot."""
    try:
        hash(type_)
    except TypeError:
        return False
    return True
