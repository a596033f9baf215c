"""The definition of the windows whose rows a store keeps, without the grace period, which changes no row."""

from __future__ import annotations

import dataclasses
from typing import Final, Protocol, cast

from pykstreams.core.windows import CountWindows, SessionWindows, SlidingWindows, Windows
from pykstreams.topology.plan import ProcessorNode, SubtopologyPlan

_KINDS: Final = (Windows, SlidingWindows, SessionWindows, CountWindows)
_GRACE: Final = "grace_period_ms"


class _JoinBounds(Protocol):
    before_ms: int
    after_ms: int


def windows_of_store(part: SubtopologyPlan, store: str) -> str | None:
    """Returns the definition of the windows of a store as text, ``None`` where no operator says it."""
    connected = (
        node.operator for node in part.nodes.values() if isinstance(node, ProcessorNode) if store in node.stores
    )
    for operator in connected:
        windows = getattr(operator, "windows", None)
        if isinstance(windows, _KINDS) and getattr(operator, "store", None) == store:
            return _definition(windows)
        if hasattr(operator, "before_ms") and hasattr(operator, "after_ms"):
            bounds = cast("_JoinBounds", operator)
            return f"JoinWindows(before_ms={bounds.before_ms}, after_ms={bounds.after_ms})"
    return None


def _definition(windows: object) -> str:
    kind = type(windows).__qualname__
    if dataclasses.is_dataclass(windows):
        names = [field.name for field in dataclasses.fields(windows) if field.name != _GRACE]
    else:
        names = ["size_ms"]
    return f"{kind}({', '.join(f'{name}={getattr(windows, name)!r}' for name in names)})"
