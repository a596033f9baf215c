"""Functions that should return something, and return ``None`` at each end, as without a ``return``.

Predicates, aggregators, reducers and selectors of keys should, and any other function where its annotation says so: a
mapper may be there to make tombstones.
Their code is read once, where a step is given them, so that records pay nothing for it. Invariant: nothing is said of
a function that may return something else.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Final

from pykstreams.core.user_code.annotations import plain_function, returned_type
from pykstreams.dsl.annotations.inference import shown_function
from pykstreams.serdes.by_type import rules_out_none, type_name
from pykstreams.topology.contradiction import Contradiction
from pykstreams.topology.graph import Graph

_GENERATORS: Final = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR

_DELETES: Final = ("which deletes the row of each key", "return the aggregate")
_NO_KEY: Final = ("so that no record has a key", "return the key")
_WHAT_COMES_OF_NONE: Final[Mapping[str, tuple[str, str]]] = {
    "predicate": ("which counts as False", "return whether the record is meant"),
    **dict.fromkeys(("aggregator", "adder", "subtractor", "reducer", "session_merger"), _DELETES),
    **dict.fromkeys(("key_selector", "key_mapper"), _NO_KEY),
}
"""What it comes to, and the cure, by the parameters whose functions nobody means to return ``None`` always."""


def note_missing_return(graph: Graph, step: str, parameter: str, function: Callable[..., object]) -> None:
    """Notes in the graph that a function returns nothing, against its annotation or its purpose, if that is so."""
    plain = plain_function(function)
    if plain is None or not _returns_nothing(plain.__code__):
        return
    type_ = returned_type(function)
    if rules_out_none(type_):
        name = type_name(type_)
        what = f"{shown_function(function)} is annotated to return {name}, and returns None whatever comes"
        cure = f"return the result at each end of the function, or annotate it to return {name} | None"
        graph.contradictions.append(Contradiction(step, what, cure))
    elif parameter in _WHAT_COMES_OF_NONE:
        outcome, cure = _WHAT_COMES_OF_NONE[parameter]
        what = f"{shown_function(function)} returns None whatever comes, {outcome}"
        graph.contradictions.append(Contradiction(step, what, cure))


def _returns_nothing(code: CodeType) -> bool:
    """Whether a function has an end that is no exception, and each of them returns ``None``."""
    if code.co_flags & _GENERATORS:
        return False
    ends, before = 0, None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("RETURN_VALUE", "RETURN_CONST"):
            constant = instruction if instruction.opname == "RETURN_CONST" else before
            jumped_to = constant is before and instruction.is_jump_target  # as in "return value or None"
            if constant is None or jumped_to or "CONST" not in constant.opname or constant.argval is not None:
                return False
            ends += 1
        before = instruction
    return ends > 0
