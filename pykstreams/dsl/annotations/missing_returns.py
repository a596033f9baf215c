"""Functions that should return something, and return ``None`` at each end, as without a ``return``.

Predicates, aggregators, reducers and selectors of keys should, and any other function where its annotation says so: a
mapper may be there to make tombstones.
Their code is read once, where a step is given them, so that records pay nothing for it. Invariant: nothing is said of
a function that may return something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pykstreams.core.user_code.annotations import returned_type
from pykstreams.core.user_code.returns import returns_nothing
from pykstreams.dsl.annotations.inference import shown_function
from pykstreams.serdes.by_type import rules_out_none, type_name
from pykstreams.topology.contradiction import Contradiction
from pykstreams.topology.graph import Graph

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
    if not returns_nothing(function):
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
