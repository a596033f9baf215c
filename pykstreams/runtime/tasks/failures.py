"""Failures of records that cannot be read, processed or serialized: handlers, dead letters, the final error.

Nothing here runs for a record that succeeds. Invariant: an error leaves a task once, as a ``StreamsError`` that says
where it happened; errors that a node further down has reported pass through unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    ClusterUnavailableError,
    ProcessingError,
    SerdeError,
    StoreEngineError,
    StreamsError,
    TaskCorruptedError,
    TaskMigratedError,
    WrongTypeError,
)
from pykstreams.core.handlers import (
    DefaultProductionExceptionHandler,
    ErrorHandlerContext,
    ErrorHandlerResponse,
    ErrorHandlerResult,
    SerializationExceptionOrigin,
    checked_response,
    handler_function,
    only_fails,
)
from pykstreams.core.ids import TaskId
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.record import ConsumerRecord, ProducerRecord, Record, RecordContext
from pykstreams.core.shown_values import cut, shown, without_values
from pykstreams.core.store_topic import StoreTopic, row_of
from pykstreams.core.types import Decoder, Headers
from pykstreams.core.user_code.frames import user_frame
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.dropped import DroppedRecords
from pykstreams.serdes.base import located

log = logging.getLogger(__name__)

PASSED_THROUGH = (ClusterUnavailableError, ProcessingError, StoreEngineError, TaskCorruptedError, TaskMigratedError)
"""Errors that no handler is asked about: they were decided on already, or no record is to blame for them.

Kafka Streams asks the processing handler about a store that cannot be read, too (``ProcessorNode.process``, 4.3.1), and
with "continue" loses the records that needed the store.
"""

_ERROR_CHARACTERS = 600
_CORRECT_IT = "correct it, or set processing.exception.handler to go on without such records"
ROW_OF_ANOTHER_TYPE = (
    "it was written with another type, or of a value that was not of its type, and the record that needs it is not to "
    "blame: give new fields a default, or take the old type back; or stop all workers, and begin anew with 'pykstreams "
    "reset' ('pykstreams diff' tells of changed types before they are deployed)"
)
"""The cure for a row that does not fit its type today: to pass over the record that needs it mends nothing."""


class Failures:
    """The exception handlers of one task."""

    def __init__(
        self,
        task_id: TaskId,
        config: StreamsConfig,
        collector: RecordCollector,
        current: CurrentRecord,
        dropped: DroppedRecords,
        makers: Mapping[tuple[str, str], tuple[str, ...]] | None = None,
    ) -> None:
        self._task_id = task_id
        self._makers = makers or {}
        self._collector = collector
        self._current = current
        self._dropped = dropped
        self._deserialization = config.deserialization_exception_handler
        self._processing = config.processing_exception_handler
        self._production = config.production_exception_handler
        self.only_fails = only_fails(self._processing, config.errors_dead_letter_queue_topic_name)
        """Whether the processing handler just fails, so that it does not matter which node it was asked about."""
        self.shows_input = not (self.only_fails and type(self._production) is DefaultProductionExceptionHandler)
        """Whether a handler, or a dead letter, may show the raw key and value of the input record."""

    def undecodable(self, source: str, message: RecordMessage, decode_key: Decoder, error: Exception) -> None:
        """Asks about an input record that cannot be deserialized; returns when it is to be skipped."""
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        headers = message.headers() or ()
        timestamp, key, value = message.timestamp()[1], message.key(), message.value()
        found = without_values(located(error, topic, partition, offset))
        context = ErrorHandlerContext(topic, partition, offset, headers, source, self._task_id, timestamp, key, value)
        record = ConsumerRecord(topic, partition, offset, timestamp, key, value, headers)
        if self._resumes("deserialization", self._deserialization, context, record, found):
            self._dropped.count(source, failed=True)
            return
        part = _unreadable_part(key, headers, decode_key)
        raise StreamsError(
            f"{source} (task {self._task_id}) cannot read the {part} of a record: {found}; give the source the right "
            f"{part}_serde, or set deserialization.exception.handler to skip such records",
            task_id=self._task_id,
        ) from found

    def processing(
        self, node: str, error: Exception, key: object, value: object, timestamp: int, headers: Headers
    ) -> None:
        """Asks about an exception of a node; returns when the record is to be dropped there."""
        if isinstance(error, PASSED_THROUGH):
            raise error
        without_values(error)
        context = self._context(node, timestamp, headers)
        record = None if timestamp < 0 else Record(key, value, timestamp, headers)
        if self._resumes("processing", self._processing, context, record, error):
            self._passed_over(node, error)
            return
        if isinstance(error, StreamsError) and not isinstance(error, SerdeError) and origin_of(error) is None:
            said = str(error)  # our own, a sink's for instance: it has the place and the cure
        else:
            cure = self._cure_of_row(node, error, key) or _cure(error)
            what = f"key={shown(key)}, value={shown(value)}; {cure}"
            said = f"{self._described(node, context, error)}; {what}"
        raise self._final(node, context, said) from error

    def _passed_over(self, node: str, error: Exception) -> None:
        """Counts a record that is dropped, and warns where another one of the same key will fare no better."""
        if not isinstance(error, SerdeError) or not isinstance(error.topic, StoreTopic):
            self._dropped.count(node, failed=True)
            return
        reason = f"it needs a row of store {error.topic.store!r} that does not fit its type: {ROW_OF_ANOTHER_TYPE}"
        self._dropped.drop(node, reason, failed=True)

    def punctuation(self, node: str, error: Exception, time: int) -> None:
        """Asks about an exception of a punctuator; returns when it is to go on."""
        if isinstance(error, PASSED_THROUGH):
            raise error
        without_values(error)
        context = ErrorHandlerContext(None, -1, -1, (), node, self._task_id, time)
        if self._resumes("processing", self._processing, context, None, error):
            self._dropped.count(node, failed=True)
            return
        said = f"{self._described(node, context, error)}; punctuator at {time}; {_cure(error)}"
        raise self._final(node, context, said) from error

    def unserializable(
        self, node: str, record: ProducerRecord, error: Exception, origin: SerializationExceptionOrigin
    ) -> None:
        """Asks about an output record that cannot be serialized; returns when it is to be dropped."""
        without_values(error)
        time = -1 if record.timestamp is None else record.timestamp
        context = self._context(node, time, record.headers)
        handle = handler_function(self._production, "handle_serialization_error")

        def ask(context: ErrorHandlerContext, record: object, error: Exception) -> ErrorHandlerResponse:
            return handle(context, record, error, origin)

        if self._resumes("production", ask, context, record, error):
            self._dropped.drop(node, f"its {origin.value} could not be serialized for topic {record.topic!r}")
            return
        raise self._unwritable(node, context, record, error, origin) from error

    def wrong_type(
        self, node: str, record: ProducerRecord, error: Exception, origin: SerializationExceptionOrigin
    ) -> StreamsError:
        """Returns the error for an output record of another type than the serializer takes; nobody is asked."""
        return self._unwritable(node, self._context(node, -1, record.headers), record, error, origin)

    def unexpected(self, error: Exception) -> StreamsError:
        """Returns the error for an exception that no node has reported."""
        context = self._current.context
        topic, partition, offset = (None, -1, -1) if context is None else context[:3]
        where = ErrorHandlerContext(topic, partition, offset, (), "", self._task_id, -1)
        cure = "" if row_of(error) is None else f"; {ROW_OF_ANOTHER_TYPE}"
        return ProcessingError(
            f"{said_of(error)}; {_input(where)} failed in task {self._task_id}{cure}",
            topic=topic,
            partition=partition,
            offset=offset,
            task_id=self._task_id,
        )

    def _unwritable(
        self,
        node: str,
        context: ErrorHandlerContext,
        record: ProducerRecord,
        error: Exception,
        origin: SerializationExceptionOrigin,
    ) -> StreamsError:
        makers = self._makers.get((node, origin.value))
        cure = (
            "give the sink the right serde, or correct the type that stands for one: in the annotation of the function "
            "that made it, or where the topic is read"
        )
        if makers is not None:
            which = " or ".join(makers)
            cure = f"it is from {which}: correct what it returns or its annotation, or give the sink the right serde"
        return StreamsError(
            f"{node} cannot write the {origin.value} of a record to topic {record.topic!r}: {error}; {cure} "
            f"({_input(context)}, task {self._task_id})",
            task_id=self._task_id,
        )

    def _cure_of_row(self, node: str, error: Exception, key: object) -> str | None:
        """The cure where a step writes rows of another type than its function is annotated to return.

        ``None`` for what is none, and where it may be the key that is of another type.
        """
        makers = self._makers.get((node, "value"))
        if makers is None or not isinstance(error, WrongTypeError) or f" {shown(key)} of type " in str(error):
            return None
        return (
            f"if that was returned by {' or '.join(makers)}, correct the one or the other, or give the store the right "
            "serde"
        )

    def _context(self, node: str, timestamp: int, headers: Headers) -> ErrorHandlerContext:
        found: RecordContext | None = self._current.context
        if found is None:
            return ErrorHandlerContext(None, -1, -1, headers, node, self._task_id, timestamp)
        return ErrorHandlerContext(
            found.topic,
            found.partition,
            found.offset,
            headers,
            node,
            self._task_id,
            timestamp,
            found.source_raw_key,
            found.source_raw_value,
        )

    def _resumes(
        self,
        kind: str,
        handler: object,
        context: ErrorHandlerContext,
        record: ConsumerRecord | ProducerRecord | Record[object, object] | None,
        error: Exception,
    ) -> bool:
        ask: Callable[..., object] = handler_function(handler)
        try:
            response = checked_response(handler, ask(context, record, error))
        except Exception as failure:
            log.error("%s exception handler failed; it was asked because of this", kind, exc_info=error)
            raise ProcessingError(
                f"the {kind} exception handler itself failed with {said_of(failure)}; it was asked because "
                f"{context.processor_node_id} had raised {error!r} at {_input(context)}",
                node=context.processor_node_id,
                topic=context.topic,
                partition=context.partition,
                offset=context.offset,
                task_id=self._task_id,
            ) from failure
        self._collector.send_all(response.dead_letter_queue_records, {self._task_id: context.processor_node_id})
        return response.result is ErrorHandlerResult.RESUME

    def _described(self, node: str, context: ErrorHandlerContext, error: Exception) -> str:
        origin, where = origin_of(error), f"{node} failed at {_input(context)} of task {self._task_id}"
        if row_of(error) is not None:
            return f"{where}: {said_of(error)}"
        return f"{where}: {_shown_error(error)}" if origin is None else f"{_raised(origin, error)}; {where}"

    def _final(self, node: str, context: ErrorHandlerContext, said: str) -> ProcessingError:
        return ProcessingError(
            said,
            node=node,
            topic=context.topic,
            partition=context.partition,
            offset=context.offset,
            task_id=self._task_id,
        )


def _unreadable_part(key: bytes | None, headers: Headers, decode_key: Decoder) -> str:
    """Tries the key once more; nobody kept which of the two it was, because that would cost every record."""
    try:
        decode_key(key, headers)
    except Exception:  # the same one that is being reported
        return "key"
    return "value"


def _cure(error: Exception) -> str:
    return _CORRECT_IT if row_of(error) is None else ROW_OF_ANOTHER_TYPE


def origin_of(error: BaseException) -> str | None:
    """Names the innermost function of the user's code that an exception came through, with its line."""
    found = user_frame(error)
    if found is None:
        return None
    frame, line = found
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname} (line {line})"


def said_of(error: BaseException) -> str:
    """Returns the error as messages show it: with the function that raised it, or the row that does not fit."""
    origin, row = origin_of(error), row_of(error)
    if row is not None:
        reader = "" if origin is None else f" (read by {origin})"
        return f"{row} does not fit its type{reader}: {cut(str(error), _ERROR_CHARACTERS)}"
    return _shown_error(error) if origin is None else _raised(origin, error)


def _raised(origin: str, error: BaseException) -> str:
    return f"{origin} raised {_shown_error(error)}"


def _shown_error(error: BaseException) -> str:
    return cut(repr(error), _ERROR_CHARACTERS)


def _input(context: ErrorHandlerContext) -> str:
    if context.topic is None:
        return "no input record"
    return f"record {context.topic}-{context.partition} offset {context.offset}"
