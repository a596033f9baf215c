"""``TellsWhere``: errors for what an object has not, and something else has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar


class TellsWhere:
    """A class whose error for an attribute that it has not, or not yet, says how to get to it.

    ``_elsewhere`` has what to do by the name of the attribute; ``{name}`` in it is that name.
    """

    _elsewhere: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute that there is

        def __getattr__(self, name: str) -> object:
            kind = type(self)
            text = f"{kind.__name__!r} object has no attribute {name!r}"
            if name in kind._elsewhere:
                text += f"; {kind._elsewhere[name].format(name=name)}"
            raise AttributeError(text, name=name, obj=self)
