"""``KeepsContext``: what processors and transformers of users have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING


class KeepsContext:
    """A class whose ``init`` keeps a context, and whose error tells one who looks for it too early, or kept none."""

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute that there is

        def __getattr__(self, name: str) -> object:
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name == "context":
                text += "; it is there after init: an init of your own begins with super().init(context)"
            raise AttributeError(text, name=name, obj=self)
