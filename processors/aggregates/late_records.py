"""Where a windowed aggregation sends records that come too late for every window they belong to.

Such a record counts as dropped, as in Kafka Streams. Beyond Kafka Streams it may leave the operator, as it is, by a
child of its own. Invariant: that child sees late records only, and no other child sees any.
"""

from __future__ import annotations

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Forward, Headers


def late_outlet(context: OperatorContext, child: str | None) -> Forward | None:
    """Returns the child that takes late records, ``None`` where nobody wants them."""
    return None if child is None else _scoped(context, context.children[child])


def result_outlet(context: OperatorContext, late_child: str | None) -> Forward:
    """Makes the function that forwards results: to all children in order but the one for late records."""
    if late_child is None:
        return context.forward
    children = tuple(forward for name, forward in context.children.items() if name != late_child)
    if len(children) == 1:
        return _scoped(context, children[0])

    def forward(key: object, value: object, timestamp: int, headers: Headers) -> None:
        for child in children:
            child(key, value, timestamp, headers)

    return _scoped(context, forward)


def _scoped(context: OperatorContext, forward: Forward) -> Forward:
    return forward if context.failures_are_final else context.current.scoped(forward)
