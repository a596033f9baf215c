"""Passes the nodes of a topology to a ``ProcessorWrapper``.

An operator of the DSL is a compiled callable; for a wrapper it is made a ``Processor`` that forwards by the context it
was given, so that a wrapper can stand before it and behind it. An operator that comes back as it went stays compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from pykstreams.core.errors import StreamsError, TopologyError
from pykstreams.core.processor import (
    AnyProcessor,
    AnyProcessorSupplier,
    OperatorContext,
    OperatorSupplier,
    ProcessorContext,
)
from pykstreams.core.processor_wrapper import BUILDING, ProcessorWrapper
from pykstreams.core.record import AnyRecord, Record
from pykstreams.core.types import Forward, Headers
from pykstreams.topology.definition import Supplier


@runtime_checkable
class WrapsUserCode(Protocol):
    """An operator that runs processors of a user."""

    @property
    def supplier(self) -> Callable[[], object]:
        """The supplier that the user gave."""
        ...

    def wrapped(self, wrapper: ProcessorWrapper, name: str) -> OperatorSupplier:
        """The same operator over what the wrapper makes of the user's supplier."""
        ...


def wrapped(wrapper: ProcessorWrapper, name: str, supplier: Supplier) -> Supplier:
    """Returns what the wrapper makes of a node; ``TopologyError`` for what is no supplier."""
    if isinstance(supplier, WrapsUserCode):
        return supplier.wrapped(wrapper, name)
    given: AnyProcessorSupplier = _OperatorProcessors(supplier) if hasattr(supplier, "build") else supplier
    found = wrapper.wrap_processor_supplier(name, given)
    if not callable(found):
        raise TopologyError(
            f"{type(wrapper).__name__}.wrap_processor_supplier gave {found!r} for {name!r}; "
            "give a callable without arguments, such as the supplier it was given"
        )
    return supplier if found is given else found


@dataclass(frozen=True, slots=True)
class _OperatorProcessors:
    """The supplier that stands for an operator of the DSL."""

    operator: OperatorSupplier

    def __call__(self) -> AnyProcessor:
        return _OperatorProcessor(self.operator)


class _OperatorProcessor(AnyProcessor):
    """An operator of the DSL as a processor."""

    def __init__(self, operator: OperatorSupplier) -> None:
        self._operator = operator
        self._position = BUILDING.get(None)

    def init(self, context: ProcessorContext[object, object]) -> None:
        super().init(context)
        if self._position is None:
            raise StreamsError(
                f"{self._operator!r} was made before its task: a wrapper must call the supplier that it is given each "
                "time its own is called, and not keep what it gave"
            )
        inside = _Inside(self._position, context)
        self._run = self._operator.build(cast("OperatorContext", inside))
        for callback in inside.init_callbacks:
            callback()

    def process(self, record: AnyRecord) -> None:
        self._run(record.key, record.value, record.timestamp, record.headers)


class _Inside:
    """The position of an operator, whose children are reached by the context of its processor; an ``OperatorContext``.

    Nothing is read from a source, or goes into a sink, past the wrapper. ``on_init`` callbacks run as soon as the
    operator is built, since this is in ``init`` already.
    """

    def __init__(self, position: OperatorContext, context: ProcessorContext[object, object]) -> None:
        self._position = position
        self._context = context
        self.serialized_sink = None
        self.gets_what_was_read = False
        self.init_callbacks: list[Callable[[], None]] = []
        self.forward: Forward = self._to(None)
        self.children: Mapping[str, Forward] = {name: self._to(name) for name in position.children}

    def __getattr__(self, name: str) -> object:
        return getattr(self._position, name)

    def on_init(self, callback: Callable[[], None]) -> None:
        """Runs the callback when the operator is built."""
        self.init_callbacks.append(callback)

    def _to(self, child: str | None) -> Forward:
        forward = self._context.forward

        def forward_record(key: object, value: object, timestamp: int, headers: Headers) -> None:
            forward(Record(key, value, timestamp, headers), child)

        return forward_record
