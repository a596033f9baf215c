"""The functions that make keys and values, noted in the graph for the message when one has returned another type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from pykstreams.dsl.annotations.inference import (
    key_serde,
    pair_serdes,
    pairs_serdes,
    shown_function,
    value_serde,
    values_serde,
)
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.serdes.by_type import TYPES
from pykstreams.serdes.defaults import SerdeOrDefault


def note_maker(made: RecordSerdes, function: Callable[..., object], makes: str) -> None:
    """Notes that a function made the keys or values that a step forwards.

    :param makes: ``key``, ``value``, ``values`` (several of them), ``pair`` (of a key and a value) or ``pairs``.
    """
    match makes:
        case "key":
            _note(made, "key", made.key_serde, function, key_serde(function))
        case "value":
            _note(made, "value", made.value_serde, function, value_serde(function))
        case "values":
            several = cast("Callable[..., Iterable[object]]", function)
            _note(made, "value", made.value_serde, function, values_serde(several))
        case "pair" | "pairs":
            several = cast("Callable[..., Iterable[object]]", function)
            keys, values = pair_serdes(function) if makes == "pair" else pairs_serdes(several)
            _note(made, "key", made.key_serde, function, keys)
            _note(made, "value", made.value_serde, function, values)


def _note(
    made: RecordSerdes, part: str, serde: SerdeOrDefault, function: Callable[..., object], annotated: SerdeOrDefault
) -> None:
    told = ""
    if serde is annotated and TYPES.is_made_of_types(serde):
        told = f"{shown_function(function)}, which is annotated to return {TYPES.name_of(serde)}"
    made.graph.makers[made.name, part] = told
