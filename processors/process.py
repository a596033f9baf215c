"""The type of what an operator is per record, where the types of records are erased."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from pykstreams.core.types import Forward, Headers

Process: TypeAlias = Callable[[Any, Any, int, Headers], None]
"""(key, value, timestamp in ms, headers) of a record of the types that the operator's parents forward.

An operator declares these types itself, as ``Forward``, which takes anything, cannot: a topology connects operators of
all types.
"""


class FunctionContext(Protocol):
    """The part of an ``OperatorContext`` that operators with one function need: such a one can be tried again."""

    @property
    def forward(self) -> Forward:
        """All children, in order, as one callable."""
        ...

    def fail(self, error: Exception, key: object, value: object, timestamp: int, headers: Headers) -> None:
        """Handles an exception of the function, with the record that it got; returns when it is to be dropped here."""
        ...


class FunctionOperator(Protocol):
    """An operator that calls a function for each record, and forwards only what a call that ended well has given."""

    def build(self, context: FunctionContext) -> Process:
        """Makes the callable, as ``OperatorSupplier.build`` does."""
        ...
