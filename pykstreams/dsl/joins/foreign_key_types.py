"""Foreign keys whose annotated type no key of the other table can have.

Invariant: what is refused would be refused of every record, too. So only such types are looked at of which no value is
of two at once, and serdes of this project that refuse a value by its type alone. Of all other types, and of keys of
global tables, a contradiction is noted, as those of parameters are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Final, cast
from uuid import UUID

from pykstreams.core.errors import TopologyError, WrongTypeError
from pykstreams.dsl.annotations.argument_types import exclude
from pykstreams.dsl.annotations.inference import element_types, result_types, shown_function
from pykstreams.dsl.place import Place
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.by_type import TYPES, type_name
from pykstreams.serdes.primitives import SIMPLE_SERDES
from pykstreams.serdes.text_values import TextSerde
from pykstreams.topology.contradiction import Contradiction

_VALUES: Final[Mapping[object, tuple[object, ...]]] = {
    str: ("",),
    bytes: (b"",),
    bool: (False,),
    int: (0, False),
    float: (0.0, 0, False),
    UUID: (UUID(int=0),),
    Decimal: (Decimal(0),),
    date: (date.min, datetime.min),
    datetime: (datetime.min,),
    time: (time.min,),
}
"""Values of the types that are compared, one of each kind that a function may return that is annotated with them."""


def check_foreign_key(extractor: Callable[..., object], referred: Place, serde: object) -> None:
    """Raises ``TopologyError`` where a serde takes nothing of the type that a function is annotated to return.

    :param referred: the table whose keys they are to be.
    :param serde: what writes them.
    """
    _check(extractor, result_types(extractor), referred, serde)


def check_foreign_keys(extractor: Callable[..., Iterable[object]], referred: Place, serde: object) -> None:
    """The same for a function that returns several."""
    _check(extractor, element_types(extractor), referred, serde)


def note_global_key(selector: Callable[..., object], referred: Place) -> None:
    """Notes in the graph that a function is annotated to return what no key of a global table is."""
    types = result_types(selector)
    if _are_apart(types, referred.key_serde):
        said = _contradiction(selector, types, referred, referred.key_serde, "key of the global table")
        referred.graph.contradictions.append(said)


def _check(extractor: Callable[..., object], types: tuple[object, ...], referred: Place, serde: object) -> None:
    said = _contradiction(extractor, types, referred, serde, "foreign key")
    if types and all(_is_refused(type_, serde) for type_ in types):
        raise TopologyError(f"{said.what}; {said.cure}")
    if _are_apart(types, serde):
        referred.graph.contradictions.append(said)


def _are_apart(types: tuple[object, ...], serde: object) -> bool:
    keys = TYPES.type_of(serde)
    return bool(types) and all(exclude(type_, keys) for type_ in types)


def _contradiction(
    extractor: Callable[..., object], types: tuple[object, ...], referred: Place, serde: object, wanted: str
) -> Contradiction:
    names, keys, shown = " | ".join(map(type_name, types)), TYPES.name_of(serde), shown_function(extractor)
    return Contradiction(
        referred.name,
        f"{shown} is annotated to return {names} as {wanted}, and keys of {referred.name} are {keys}: no row would be "
        "found",
        f"let it return {keys}, give the table keys of {names}, or correct the annotation",
    )


def _is_refused(type_: object, serde: object) -> bool:
    values = _VALUES.get(type_, ()) if isinstance(type_, type) else ()
    if not values or type(serde) not in (*SIMPLE_SERDES, TextSerde):
        return False
    return all(_refuses(cast("AnySerde", serde), value) for value in values)


def _refuses(serde: AnySerde, value: object) -> bool:
    try:
        serde.serializer.serialize("", value)
    except WrongTypeError:
        return True
    return False
