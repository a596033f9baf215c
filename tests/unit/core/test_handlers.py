"""Built-in exception handlers and their dead letter records."""

import logging
from typing import Any

import pytest

from pykstreams.core.errors import DeliveryError
from pykstreams.core.handlers import (
    DefaultProductionExceptionHandler,
    ErrorHandlerContext,
    ErrorHandlerResponse,
    ErrorHandlerResult,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndFailExceptionHandler,
    LogAndFailProcessingExceptionHandler,
    SerializationExceptionOrigin,
    checked_response,
    dead_letter_record,
    handler_function,
)
from pykstreams.core.ids import TaskId
from pykstreams.core.record import ConsumerRecord, ProducerRecord, Record

CONTEXT = ErrorHandlerContext("orders", 1, 42, [("h", b"x")], "NODE-1", TaskId(0, 1), 77, b"key", b"value")
INPUT = ConsumerRecord("orders", 1, 42, 77, b"key", b"value", [("h", b"x")])
OUTPUT = ProducerRecord("out", b"key", b"value")
WITH_DEAD_LETTERS = {"errors.dead.letter.queue.topic.name": "dlq"}


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_dead_letter_carries_the_input_bytes_and_the_facts_in_kafkas_order() -> None:
    letter = dead_letter_record("dlq", CONTEXT, raised(ValueError("boom")))

    assert ("dlq", b"key", b"value", None, 77) == letter[:5]
    assert ("h", b"x") == letter.headers[0]
    facts = dict(letter.headers[1:])
    stacktrace = facts.pop("__streams.errors.stacktrace")
    assert stacktrace is not None and b"ValueError: boom" in stacktrace
    assert {
        "__streams.errors.exception": b"builtins.ValueError",
        "__streams.errors.message": b"boom",
        "__streams.errors.topic": b"orders",
        "__streams.errors.partition": b"1",
        "__streams.errors.offset": b"42",
    } == facts
    assert ["exception", "message", "stacktrace", "topic", "partition", "offset"] == [
        name.removeprefix("__streams.errors.") for name, _ in letter.headers[1:]
    ]


def test_dead_letter_of_a_punctuator_has_no_topic_and_one_without_text_no_message() -> None:
    context = ErrorHandlerContext(None, -1, -1, (), "NODE-1", TaskId(0, 1), 77)

    facts = dict(dead_letter_record("dlq", context, raised(ValueError())).headers)

    assert facts["__streams.errors.topic"] is None
    assert facts["__streams.errors.message"] is None
    assert b"-1" == facts["__streams.errors.partition"]


@pytest.mark.parametrize(
    ("handler", "record", "result", "level"),
    [
        (LogAndFailExceptionHandler(), INPUT, ErrorHandlerResult.FAIL, logging.ERROR),
        (LogAndContinueExceptionHandler(), INPUT, ErrorHandlerResult.RESUME, logging.WARNING),
        (
            LogAndFailProcessingExceptionHandler(),
            Record("k", "v", 77),
            ErrorHandlerResult.FAIL,
            logging.ERROR,
        ),
        (LogAndContinueProcessingExceptionHandler(), None, ErrorHandlerResult.RESUME, logging.WARNING),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("letters", [0, 1])
def test_logging_handlers_decide_log_and_add_a_dead_letter_if_asked(
    handler: Any, record: object, result: ErrorHandlerResult, level: int, letters: int, caplog: pytest.LogCaptureFixture
) -> None:
    handler.configure(WITH_DEAD_LETTERS if letters else {})

    response = handler.handle_error(CONTEXT, record, raised(ValueError("boom")))

    assert result is response.result
    assert letters == len(response.dead_letter_queue_records)
    (entry,) = caplog.records
    assert level == entry.levelno
    assert "task 0_1, orders-1 offset 42" in entry.getMessage()
    assert "NODE-1" in entry.getMessage()


def test_default_production_handler_retries_what_timed_out_and_fails_otherwise() -> None:
    handler = DefaultProductionExceptionHandler()

    timed_out = handler.handle_error(CONTEXT, OUTPUT, DeliveryError("x", name="_MSG_TIMED_OUT", retriable=True))
    refused = handler.handle_error(CONTEXT, OUTPUT, DeliveryError("x", name="MSG_SIZE_TOO_LARGE"))

    assert ErrorHandlerResult.RETRY is timed_out.result
    assert ErrorHandlerResult.FAIL is refused.result


def test_default_production_handler_fails_for_serialization_errors_with_a_dead_letter_if_asked() -> None:
    handler = DefaultProductionExceptionHandler()
    handler.configure(WITH_DEAD_LETTERS)

    response = handler.handle_serialization_error(
        CONTEXT, OUTPUT, raised(ValueError("boom")), SerializationExceptionOrigin.VALUE
    )

    assert ErrorHandlerResult.FAIL is response.result
    assert ["dlq"] == [letter.topic for letter in response.dead_letter_queue_records]


def test_a_plain_callable_is_a_handler() -> None:
    def handler(context: ErrorHandlerContext, record: object, exception: Exception) -> ErrorHandlerResponse:
        return ErrorHandlerResponse.resume()

    assert ErrorHandlerResponse.resume() == handler_function(handler)(CONTEXT, INPUT, ValueError())


def test_what_is_no_handler_is_refused() -> None:
    with pytest.raises(TypeError, match=r"exception handler is 5; expected an object with handle_error\(\)"):
        handler_function(5)


def test_a_handler_that_answers_with_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="returned None; expected an ErrorHandlerResponse"):
        checked_response("my handler", None)
