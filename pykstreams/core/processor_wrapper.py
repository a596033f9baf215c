"""Wrappers around every processor of a topology: ``processor.wrapper.class``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from pykstreams.core.processor import (
    AnyFixedKeyProcessorSupplier,
    AnyProcessorSupplier,
    OperatorContext,
)

BUILDING: Final[ContextVar[OperatorContext]] = ContextVar("BUILDING")
"""The position in a task whose processor is being made, for operators that have been given to a wrapper."""


class ProcessorWrapper(ABC):
    """Wraps or replaces each supplier of a topology, those of the DSL's operators included, when it is built.

    Operators of the DSL are handed over as suppliers of processors; the values of those below a table are tuples (new
    value, old value, is the newest of its key). What feeds a global store is not wrapped. Stores that a supplier
    brings are kept, and those that its wrapper brings are added. Such processors cost more than plain operators.
    """

    def configure(self, configs: Mapping[str, object]) -> None:  # noqa: B027 - most have nothing to configure
        """Called once, with the settings that the topology is built with."""

    @abstractmethod
    def wrap_processor_supplier(self, name: str, supplier: AnyProcessorSupplier) -> AnyProcessorSupplier:
        """Returns the supplier of the processors of a node; the given one to leave it as it is."""

    @abstractmethod
    def wrap_fixed_key_processor_supplier(
        self, name: str, supplier: AnyFixedKeyProcessorSupplier
    ) -> AnyFixedKeyProcessorSupplier:
        """The same for ``process_values``."""
