"""Exception handlers: what to do with a record that cannot be read, processed or written.

There are three kinds, for the three places where a record can fail: deserialization, processing, production.
Each gets an ``ErrorHandlerContext`` that says where the record came from, the record, and the exception, and
answers with an ``ErrorHandlerResponse``: go on without the record, fail, or (production only) try again. An
answer may carry *dead letter records*, sent whatever the decision. The built-in handlers add one themselves
when ``errors.dead.letter.queue.topic.name`` is set: the raw key and value of the input record (of the output record
where the brokers did not take it, since its input is not known any more), its headers, and behind them six more in
Kafka Streams' order (``ExceptionHandlerUtils.buildDeadLetterQueueRecord``, 4.3.1, KIP-1034)::

    __streams.errors.exception    class of the exception: module and name
    __streams.errors.message      its text, null without one
    __streams.errors.stacktrace   its traceback
    __streams.errors.topic        where the input record came from; null in punctuators, and for an output record
    __streams.errors.partition
    __streams.errors.offset
"""

from __future__ import annotations

import logging
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias, cast

from pykstreams.core.ids import TaskId
from pykstreams.core.record import AnyRecord, ConsumerRecord, ProducerRecord
from pykstreams.core.types import Headers

log = logging.getLogger(__name__)

DEAD_LETTER_TOPIC_CONFIG = "errors.dead.letter.queue.topic.name"


class ErrorHandlerResult(Enum):
    """The decision of a handler."""

    RESUME = "resume"
    FAIL = "fail"
    RETRY = "retry"


class SerializationExceptionOrigin(Enum):
    """Which part of a record could not be serialized."""

    KEY = "key"
    VALUE = "value"


class StreamThreadExceptionResponse(Enum):
    """The response to an exception that nothing else caught."""

    REPLACE_THREAD = "replace_thread"
    SHUTDOWN_CLIENT = "shutdown_client"
    SHUTDOWN_APPLICATION = "shutdown_application"


StreamsUncaughtExceptionHandler: TypeAlias = Callable[[BaseException], StreamThreadExceptionResponse]


@dataclass(frozen=True, slots=True)
class ErrorHandlerContext:
    """Where a failing record came from; topic ``None``, partition and offset -1 where that is not known."""

    topic: str | None
    partition: int
    offset: int
    headers: Headers
    processor_node_id: str
    task_id: TaskId
    timestamp: int
    source_raw_key: bytes | None = None
    source_raw_value: bytes | None = None


@dataclass(frozen=True, slots=True)
class ErrorHandlerResponse:
    """The answer of a handler: a decision, and records for a dead letter topic."""

    result: ErrorHandlerResult
    dead_letter_queue_records: tuple[ProducerRecord, ...] = ()

    @classmethod
    def resume(cls, dead_letter_queue_records: Sequence[ProducerRecord] = ()) -> ErrorHandlerResponse:
        """Drops the record and goes on."""
        return cls(ErrorHandlerResult.RESUME, tuple(dead_letter_queue_records))

    @classmethod
    def fail(cls, dead_letter_queue_records: Sequence[ProducerRecord] = ()) -> ErrorHandlerResponse:
        """Stops the task with the exception."""
        return cls(ErrorHandlerResult.FAIL, tuple(dead_letter_queue_records))

    @classmethod
    def retry(cls) -> ErrorHandlerResponse:
        """Sends the record again: the task goes back to its last commit. For production handlers only."""
        return cls(ErrorHandlerResult.RETRY)


class DeserializationExceptionHandler(ABC):
    """Decides about an input record that cannot be deserialized; the record holds raw bytes."""

    @abstractmethod
    def handle_error(
        self, context: ErrorHandlerContext, record: ConsumerRecord, exception: Exception
    ) -> ErrorHandlerResponse:
        """Called once for each such record."""


class ProcessingExceptionHandler(ABC):
    """Decides about a record whose processing raised; ``record`` is ``None`` when a punctuator raised."""

    @abstractmethod
    def handle_error(
        self, context: ErrorHandlerContext, record: AnyRecord | None, exception: Exception
    ) -> ErrorHandlerResponse:
        """Called once for each such record, at the innermost node that raised."""


class ProductionExceptionHandler(ABC):
    """Decides about an output record that could not be sent or serialized."""

    @abstractmethod
    def handle_error(
        self, context: ErrorHandlerContext, record: ProducerRecord, exception: Exception
    ) -> ErrorHandlerResponse:
        """Called when the brokers did not take a record; it holds raw bytes.

        By then the input record is no longer known: the context has no topic and no raw key and value.
        """

    def handle_serialization_error(
        self,
        context: ErrorHandlerContext,
        record: ProducerRecord,
        exception: Exception,
        origin: SerializationExceptionOrigin,
    ) -> ErrorHandlerResponse:
        """Called when key or value of an output record could not be serialized; fails if not overridden."""
        return ErrorHandlerResponse.fail()


class _DeadLetterSender:
    """The part that the built-in handlers share: a dead letter record, if a topic for them is set."""

    def __init__(self) -> None:
        self._topic: str | None = None

    def configure(self, configs: Mapping[str, object]) -> None:
        """Reads ``errors.dead.letter.queue.topic.name``."""
        topic = configs.get(DEAD_LETTER_TOPIC_CONFIG)
        self._topic = None if topic is None else str(topic)

    def _dead_letters(self, context: ErrorHandlerContext, exception: Exception) -> tuple[ProducerRecord, ...]:
        return () if self._topic is None else (dead_letter_record(self._topic, context, exception),)


class LogAndFailExceptionHandler(_DeadLetterSender, DeserializationExceptionHandler):
    """Logs an input record that cannot be deserialized, and stops the task (the default)."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ConsumerRecord, exception: Exception
    ) -> ErrorHandlerResponse:
        _log_unreadable(logging.ERROR, context, exception)
        return ErrorHandlerResponse.fail(self._dead_letters(context, exception))


class LogAndContinueExceptionHandler(_DeadLetterSender, DeserializationExceptionHandler):
    """Logs an input record that cannot be deserialized, and goes on without it."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ConsumerRecord, exception: Exception
    ) -> ErrorHandlerResponse:
        _log_unreadable(logging.WARNING, context, exception)
        return ErrorHandlerResponse.resume(self._dead_letters(context, exception))


class LogAndFailProcessingExceptionHandler(_DeadLetterSender, ProcessingExceptionHandler):
    """Logs a record whose processing raised, and stops the task (the default)."""

    def handle_error(
        self, context: ErrorHandlerContext, record: AnyRecord | None, exception: Exception
    ) -> ErrorHandlerResponse:
        log.error("%s", _processing_text(context), exc_info=exception)
        return ErrorHandlerResponse.fail(self._dead_letters(context, exception))


def only_fails(handler: object, dead_letter_topic: str | None) -> bool:
    """Whether a processing exception handler just fails, and leaves no dead letter.

    Then it does not matter of which node, or about which of several records, it is asked.
    """
    return type(handler) is LogAndFailProcessingExceptionHandler and dead_letter_topic is None


class LogAndContinueProcessingExceptionHandler(_DeadLetterSender, ProcessingExceptionHandler):
    """Logs a record whose processing raised, and goes on without it."""

    def handle_error(
        self, context: ErrorHandlerContext, record: AnyRecord | None, exception: Exception
    ) -> ErrorHandlerResponse:
        log.warning("%s", _processing_text(context), exc_info=exception)
        return ErrorHandlerResponse.resume(self._dead_letters(context, exception))


class DefaultProductionExceptionHandler(_DeadLetterSender, ProductionExceptionHandler):
    """Tries again what failed for want of time, and fails for everything else."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ProducerRecord, exception: Exception
    ) -> ErrorHandlerResponse:
        if getattr(exception, "retriable", False):
            return ErrorHandlerResponse.retry()
        if context.topic is None:  # which input record it was made of is not known any more, but itself it is
            context = replace(context, source_raw_key=record.key, source_raw_value=record.value)
        return ErrorHandlerResponse.fail(self._dead_letters(context, exception))

    def handle_serialization_error(
        self,
        context: ErrorHandlerContext,
        record: ProducerRecord,
        exception: Exception,
        origin: SerializationExceptionOrigin,
    ) -> ErrorHandlerResponse:
        return ErrorHandlerResponse.fail(self._dead_letters(context, exception))


def dead_letter_record(topic: str, context: ErrorHandlerContext, exception: Exception) -> ProducerRecord:
    """Builds the record that the built-in handlers send to a dead letter topic."""
    kind = type(exception)
    facts = (
        ("exception", f"{kind.__module__}.{kind.__qualname__}"),
        ("message", str(exception) if exception.args else None),
        ("stacktrace", "".join(traceback.format_exception(exception))),
        ("topic", context.topic),
        ("partition", str(context.partition)),
        ("offset", str(context.offset)),
    )
    headers = [
        *context.headers,
        *((f"__streams.errors.{name}", None if text is None else text.encode()) for name, text in facts),
    ]
    return ProducerRecord(
        topic, context.source_raw_key, context.source_raw_value, timestamp=context.timestamp, headers=headers
    )


def handler_function(handler: object, name: str = "handle_error") -> Callable[..., ErrorHandlerResponse]:
    """Returns the callable of a handler: its method of that name, or itself if it is a function."""
    method = getattr(handler, name, handler)
    if not callable(method):
        raise TypeError(f"exception handler is {handler!r}; expected an object with {name}() or a callable")
    return cast(Callable[..., ErrorHandlerResponse], method)


def checked_response(handler: object, response: object) -> ErrorHandlerResponse:
    """Returns the response; ``TypeError`` when a handler answered with anything else."""
    if not isinstance(response, ErrorHandlerResponse):
        raise TypeError(f"exception handler {handler!r} returned {response!r}; expected an ErrorHandlerResponse")
    return response


def _log_unreadable(level: int, context: ErrorHandlerContext, exception: Exception) -> None:
    """Logs one line a record: the exception says what is wrong, and its traceback leads through no code of users."""
    log.log(
        level,
        "record could not be deserialized: task %s, %s-%s offset %s, source %s: %s",
        context.task_id,
        context.topic,
        context.partition,
        context.offset,
        context.processor_node_id,
        exception,
        exc_info=exception if log.isEnabledFor(logging.DEBUG) else None,
    )


def _processing_text(context: ErrorHandlerContext) -> str:
    where = "a punctuator" if context.topic is None else f"{context.topic}-{context.partition} offset {context.offset}"
    return f"record could not be processed: task {context.task_id}, {where}, node {context.processor_node_id}"
