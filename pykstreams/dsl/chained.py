"""``Chained``: what the steps of the DSL have in common, the answer to a method that another step has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

TO_A_STREAM: Final = "make it a stream first: to_stream().{name}(...)"
TO_GROUPS: Final = "group it first: group_by_key().{name}(...), or group_by(...).{name}(...)"
TO_A_RESULT: Final = dict.fromkeys(
    ("filter", "join", "left_join", "map_values", "to", "to_stream", "to_table"),
    "aggregate it first, by count(), reduce(...) or aggregate(...), which gives a table",
)
"""What the steps of a group say to methods of what comes of it."""

TO_A_COGROUPED_RESULT: Final = dict.fromkeys(
    (*TO_A_RESULT, "count", "reduce"), "aggregate it first, by aggregate(initializer), which gives a table"
)


class Chained:
    """A step whose error for a method that another step has says how to get there.

    ``_elsewhere`` has what to do by the name of the method; ``{name}`` in it is that name.
    """

    _elsewhere: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # a type checker would take every name for a method that there is

        def __getattr__(self, name: str) -> object:
            kind = type(self)
            text = f"{kind.__name__!r} object has no attribute {name!r}"
            if name in kind._elsewhere:
                text += f"; {kind._elsewhere[name].format(name=name)}"
            raise AttributeError(text, name=name, obj=self)
