"""Runs processors of the Processor API inside the compiled path.

Each task gets its own processor object. A record object is made here, per record, and nowhere else; what the
processor forwards is taken apart again. An exception of ``process`` goes to ``context.fail`` with the record
that this node got.

Invariant: the context that a processor sees is the runtime's own ``ProcessingContext``; only ``forward`` is
added.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.processor import (
    AnyFixedKeyProcessorSupplier,
    AnyProcessorSupplier,
    Cancellable,
    FixedKeyProcessor,
    FixedKeyProcessorContext,
    OperatorContext,
    ProcessingContext,
    Processor,
    ProcessorContext,
    PunctuationType,
)
from pykstreams.core.processor_wrapper import BUILDING, ProcessorWrapper
from pykstreams.core.record import FixedKeyRecord, ReceivedRecord, Record, RecordMetadata
from pykstreams.core.shown_values import shown
from pykstreams.core.types import Duration, Forward, Headers, Punctuator, Timestamp
from pykstreams.core.user_code.suppliers import check_punctuator, check_supplier

log = logging.getLogger(__name__)

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class UserProcessor:
    """A node that runs a ``Processor``.

    ``supplier`` is called twice when this is made, and once per task. Raises ``TypeError`` for what is no
    supplier and ``ValueError`` for one that gives the same object twice (``ApiUtils.checkSupplier``, 4.3.1).
    """

    supplier: AnyProcessorSupplier

    def __post_init__(self) -> None:
        check_supplier(self.supplier, Processor, "process", "record")

    def wrapped(self, wrapper: ProcessorWrapper, name: str) -> UserProcessor:
        """The same over what a wrapper makes of the supplier."""
        return UserProcessor(wrapper.wrap_processor_supplier(name, self.supplier))

    def build(self, context: OperatorContext) -> Forward:
        processor = _made(self.supplier, context)
        facade = _Context(context)
        context.on_init(lambda: processor.init(facade))
        context.on_close(processor.close)
        run: Callable[[Record[object, object]], object] = processor.process
        fail, returned = context.fail, _returned(processor, context.node)

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                if (found := run(Record(key, value, timestamp, headers))) is not None:
                    returned(found)
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return process


@dataclass(frozen=True, slots=True)
class UserFixedKeyProcessor:
    """A node that runs a ``FixedKeyProcessor``; ``supplier`` as for ``UserProcessor``."""

    supplier: AnyFixedKeyProcessorSupplier

    def __post_init__(self) -> None:
        check_supplier(self.supplier, FixedKeyProcessor, "process", "record")

    def wrapped(self, wrapper: ProcessorWrapper, name: str) -> UserFixedKeyProcessor:
        """The same over what a wrapper makes of the supplier."""
        return UserFixedKeyProcessor(wrapper.wrap_fixed_key_processor_supplier(name, self.supplier))

    def build(self, context: OperatorContext) -> Forward:
        processor = _made(self.supplier, context)
        facade = _FixedKeyContext(context)
        context.on_init(lambda: processor.init(facade))
        context.on_close(processor.close)
        run: Callable[[FixedKeyRecord[object, object]], object] = processor.process
        fail, returned = context.fail, _returned(processor, context.node)

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                if (found := run(ReceivedRecord(key, value, timestamp, headers))) is not None:
                    returned(found)
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return process


def _made(supplier: Callable[[], Made], context: OperatorContext) -> Made:
    """Calls a supplier; what it makes finds there for which position in the task it is made."""
    token = BUILDING.set(context)
    try:
        return supplier()
    finally:
        BUILDING.reset(token)


def _returned(processor: object, node: str) -> Callable[[object], None]:
    """Returns what is called with whatever ``process`` returns: it warns of a record, once, which nobody takes."""
    told = False

    def returned(found: object) -> None:
        nonlocal told
        if told or not isinstance(found, Record | FixedKeyRecord):
            return
        told = True
        log.warning(
            "%s: %s.process returned a record, which nobody takes; hand it on by self.context.forward(record)",
            node,
            type(processor).__qualname__,
        )

    return returned


class DelegatingContext(ProcessingContext):
    """Hands every question on to the runtime's context, and records to the children of one node."""

    __slots__ = ("_children", "_forward", "_node", "_processing")

    def __init__(self, context: OperatorContext) -> None:
        self._processing = context.processing
        self._node = context.node
        following = context.current.following
        self._forward = following(context.forward)
        self._children = {name: following(child) for name, child in context.children.items()}

    def _child(self, name: str) -> Forward:
        """Returns one child; ``StreamsError`` for another name (``ProcessorContextImpl.forward``, 4.3.1)."""
        child = self._children.get(name)
        if child is None:
            known = ", ".join(map(repr, self._children)) or "none"
            raise StreamsError(
                f"{self._node} forwards to {name!r}, which is not connected to it; its children are: {known}"
            )
        return child

    @property
    def application_id(self) -> str:
        return self._processing.application_id

    @property
    def task_id(self) -> TaskId:
        return self._processing.task_id

    @property
    def record_metadata(self) -> RecordMetadata | None:
        return self._processing.record_metadata

    @property
    def key_serde(self) -> object:
        return self._processing.key_serde

    @property
    def value_serde(self) -> object:
        return self._processing.value_serde

    @property
    def state_dir(self) -> Path:
        return self._processing.state_dir

    @property
    def metrics(self) -> StreamsMetrics:
        return self._processing.metrics

    def get_state_store(self, name: str) -> object:
        return self._processing.get_state_store(name)

    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        *,
        start_time: Timestamp | None = None,
    ) -> Cancellable:
        check_punctuator(punctuation_type, callback)
        return self._processing.schedule(interval, punctuation_type, callback, start_time=start_time)

    def commit(self) -> None:
        self._processing.commit()

    @property
    def app_configs(self) -> Mapping[str, object]:
        return self._processing.app_configs

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        return self._processing.app_configs_with_prefix(prefix)

    def current_system_time_ms(self) -> int:
        return self._processing.current_system_time_ms()

    def current_stream_time_ms(self) -> int:
        return self._processing.current_stream_time_ms()


class _Context(DelegatingContext, ProcessorContext[object, object]):
    __slots__ = ()

    def forward(self, record: Record[object, object], child_name: str | None = None) -> None:
        if child_name is None:
            child = self._forward
        elif isinstance(child_name, str):
            child = self._child(child_name)
        else:
            raise self._no_record(f"{shown(record)}, {shown(child_name)}")
        try:
            child(record.key, record.value, record.timestamp, record.headers)
        except AttributeError:
            if all(hasattr(record, name) for name in ("key", "value", "timestamp", "headers")):
                raise  # it is of a step below
            raise self._no_record(shown(record)) from None

    def _no_record(self, given: str) -> StreamsError:
        return StreamsError(
            f"{self._node} forwards {given}; expected a Record, as Record(key, value, record.timestamp) or "
            "record.replace(value=...), and behind it the name of a child at most"
        )


class _FixedKeyContext(DelegatingContext, FixedKeyProcessorContext[object, object]):
    __slots__ = ()

    def forward(self, record: FixedKeyRecord[object, object], child_name: str | None = None) -> None:
        if record.__class__ is not ReceivedRecord:
            raise self._made_by_hand(record)
        child = self._forward if child_name is None else self._child(child_name)
        child(record.key, record.value, record.timestamp, record.headers)

    def _made_by_hand(self, record: object) -> StreamsError:
        return StreamsError(
            f"{self._node} forwards a {type(record).__name__} that was made by hand; a FixedKeyProcessor forwards the "
            "records that it gets, with other values by record.replace(value=...); use KStream.process to forward "
            "other keys"
        )
