"""``retry=``: a record whose function has failed waits, later ones of its key behind it, and others pass."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    KStream,
    LogAndContinueProcessingExceptionHandler,
    Retry,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
)
from pykstreams.core.errors import ProcessingError
from pykstreams.testing import MockClock, TestInputTopic, TestOutputTopic, TestRecord, TopologyTestDriver

TEXT = Serdes.string()
GO_ON: dict[str, object] = {
    "errors.dead.letter.queue.topic.name": "dead",
    "processing.exception.handler": LogAndContinueProcessingExceptionHandler,
}
SECONDS = Retry[Any, Any](jitter=0)
"""Waits 1, 2, 4 and 8 s, and calls the function five times at most."""
OPEN: list[TopologyTestDriver] = []


@pytest.fixture(autouse=True)
def drivers() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


class Service:
    """A remote service that is down for some values."""

    def __init__(self, *refused: str) -> None:
        self.refused = set(refused)
        self.calls: list[str] = []
        self.error: type[Exception] = ConnectionError

    def __call__(self, value: str) -> str:
        self.calls.append(value)
        if value in self.refused:
            raise self.error(f"no answer for {value}")
        return value.upper()


class Application:
    """A topology with one step that asks the service, in a driver."""

    def __init__(self, add: Callable[[KStream[Any, str]], KStream[Any, Any] | None], config: Any = None) -> None:
        builder = StreamsBuilder()
        result = add(builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT)))
        if result is not None:
            result.to("out")
        settings = {"default.key.serde": TEXT, "default.value.serde": TEXT, **(config or {})}
        self.driver = TopologyTestDriver(builder.build(), settings, initial_wall_clock_time=1000)
        OPEN.append(self.driver)
        self.input: TestInputTopic[Any, Any] = self.driver.create_input_topic("in")
        self.output: TestOutputTopic[Any, Any] = self.driver.create_output_topic("out")
        self.dead: TestOutputTopic[Any, Any] = self.driver.create_output_topic("dead")

    def pipe(self, *records: tuple[str | None, str]) -> None:
        for key, value in records:
            self.input.pipe_input(key, value, 5)

    def wait(self, seconds: float) -> None:
        self.driver.advance_wall_clock_time(timedelta(seconds=seconds))

    def values(self) -> list[str]:
        return self.output.read_values()


def mapped(service: Service, retry: Retry[Any, Any] = SECONDS, config: Any = None) -> Application:
    return Application(lambda stream: stream.map_values(service, retry=retry), config)


def test_records_of_other_keys_pass_one_that_waits_and_those_of_its_key_follow_in_order() -> None:
    service = Service("a1")
    app = mapped(service)

    app.pipe(("a", "a1"), ("b", "b1"), ("a", "a2"), ("b", "b2"), ("a", "a3"))
    assert app.values() == ["B1", "B2"]

    service.refused.clear()
    app.wait(1)
    assert app.values() == ["A1", "A2", "A3"]
    app.pipe(("a", "a4"))
    assert app.values() == ["A4"]


def test_a_record_is_tried_again_when_its_back_off_has_passed_and_not_before() -> None:
    service = Service("a1")
    app = mapped(service)
    app.pipe(("a", "a1"))
    calls = []
    for _ in range(8):
        app.wait(0.5)
        calls.append(len(service.calls))

    assert calls == [1, 2, 2, 2, 2, 3, 3, 3], "after 1 s, and after 2 more"


def test_a_long_queue_leaves_turn_by_turn_although_time_passes_between_two_looks_at_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    look = MockClock.now_ms

    def moves_on(clock: MockClock) -> int:
        clock.advance(1)
        return look(clock)

    monkeypatch.setattr(MockClock, "now_ms", moves_on)
    service = Service("0")
    app = mapped(service)
    values = [str(number) for number in range(300)]
    app.pipe(*(("a", value) for value in values))
    service.refused.clear()
    turns = []
    for _ in range(8):
        app.wait(1)
        turns.append(len(app.values()))

    assert sum(turns) == 300
    assert 0 < turns[0] < 300, "more than one turn"


def test_a_record_keeps_its_time_headers_and_place_until_it_leaves() -> None:
    service = Service("a1")
    app = mapped(service)
    app.input.pipe_record(TestRecord("a", "a1", timestamp=77, headers=(("h", b"1"),)))
    app.pipe(("b", "b1"))
    service.refused.clear()
    app.wait(1)
    seen = app.output.read_records()

    assert [(one.value, one.timestamp, tuple(one.headers)) for one in seen] == [
        ("B1", 5, ()),
        ("A1", 77, (("h", b"1"),)),
    ]


def test_records_without_key_wait_each_on_its_own() -> None:
    service = Service("n1")
    app = mapped(service)
    app.pipe((None, "n1"), (None, "n2"))
    assert app.values() == ["N2"]

    service.refused.clear()
    app.wait(1)
    assert app.values() == ["N1"]


def test_a_record_whose_attempts_are_used_up_becomes_a_dead_letter_and_the_next_of_its_key_goes_on() -> None:
    service = Service("a1")
    app = mapped(service, Retry(max_attempts=3, jitter=0), GO_ON)
    app.input.pipe_record(TestRecord("a", "a1", timestamp=77, headers=(("h", b"1"),)))
    app.pipe(("a", "a2"))
    app.wait(1)
    assert app.dead.is_empty
    app.wait(2)

    (letter,) = app.dead.read_records()
    headers = dict(letter.headers)
    assert (letter.key, letter.value, letter.timestamp, headers["h"]) == ("a", "a1", 77, b"1")
    assert headers["__streams.errors.exception"] == b"builtins.ConnectionError"
    assert headers["__streams.errors.message"] == b"no answer for a1"
    assert b"attempt 3" in (headers["__streams.errors.stacktrace"] or b"")
    assert [headers[f"__streams.errors.{name}"] for name in ("topic", "partition", "offset")] == [b"in", b"0", b"0"]
    assert headers["__streams.errors.attempts"] == b"3"
    assert headers["__streams.errors.first.failure"] == b"1000"
    assert app.values() == ["A2"]


def test_a_total_time_ends_with_a_last_attempt() -> None:
    service = Service("a1")
    app = mapped(service, Retry(max_attempts=None, max_time=timedelta(seconds=4), jitter=0), GO_ON)
    app.pipe(("a", "a1"))
    for _ in range(4):
        app.wait(1)

    assert len(service.calls) == 4, "at 0, 1, 3 and, in place of 7, 4 s"
    assert len(app.dead) == 1


def test_an_error_that_is_not_passing_is_not_tried_again() -> None:
    service = Service("a1")
    service.error = ValueError
    app = mapped(service, Retry(retry_on=(ConnectionError, TimeoutError)), GO_ON)
    app.pipe(("a", "a1"), ("a", "a2"))

    assert dict(app.dead.read_records()[0].headers)["__streams.errors.attempts"] == b"1"
    assert app.values() == ["A2"]


def test_a_function_may_say_which_errors_are_passing() -> None:
    service = Service("a1", "b1")
    app = mapped(service, Retry(retry_on=lambda error: "a1" in str(error)), GO_ON)
    app.pipe(("a", "a1"), ("b", "b1"))

    assert app.dead.read_values() == ["b1"]


@pytest.mark.parametrize("good_answers", [0, 1])
def test_an_error_of_the_function_that_says_which_are_passing_is_given_up_with_and_the_next_of_the_key_goes_on(
    good_answers: int,
) -> None:
    answers = [True] * good_answers

    def is_passing(error: Exception) -> bool:
        if not answers:
            raise KeyError("status")
        return answers.pop()

    service = Service("a1")
    app = mapped(service, Retry(retry_on=is_passing, jitter=0), GO_ON)
    app.pipe(("a", "a1"), ("a", "a2"))
    app.wait(1)
    app.pipe(("a", "a3"))

    (letter,) = app.dead.read_records()
    headers = dict(letter.headers)
    assert (letter.value, headers["__streams.errors.exception"]) == ("a1", b"builtins.KeyError")
    assert b"no answer for a1" in (headers["__streams.errors.stacktrace"] or b"")
    assert app.values() == ["A2", "A3"]


def test_a_function_may_raise_the_error_that_it_is_asked_about() -> None:
    def is_passing(error: Exception) -> bool:
        raise error

    app = mapped(Service("a1"), Retry(retry_on=is_passing), GO_ON)
    app.pipe(("a", "a1"))

    assert dict(app.dead.read_records()[0].headers)["__streams.errors.message"] == b"no answer for a1"


def test_without_another_handler_the_task_fails_when_attempts_are_used_up() -> None:
    app = mapped(Service("a1"), Retry(max_attempts=2, jitter=0))
    app.pipe(("a", "a1"))

    with pytest.raises(ProcessingError, match=r"KSTREAM-MAPVALUES-0000000001 failed at record in-0 offset 0"):
        app.wait(1)


def test_the_task_takes_no_more_records_while_as_many_wait_as_may() -> None:
    service = Service("a1", "b1")
    app = mapped(service, Retry(max_waiting=2, jitter=0))
    app.pipe(("a", "a1"), ("b", "b1"), ("c", "c1"))
    assert app.values() == []

    service.refused.remove("a1")
    app.wait(1)
    assert app.values() == ["A1", "C1"]


def test_an_error_below_the_step_is_not_tried_again() -> None:
    service = Service("a1")
    failures = []

    def fail(value: str) -> str:
        failures.append(value)
        raise RuntimeError("below")

    app = Application(lambda stream: stream.map_values(service, retry=SECONDS).map_values(fail), GO_ON)
    app.pipe(("a", "a1"), ("a", "a2"))
    service.refused.clear()
    app.wait(1)
    app.wait(100)

    assert failures == ["A1", "A2"]
    assert [dict(one.headers)["__streams.errors.offset"] for one in app.dead.read_records()] == [b"0", b"1"]


def test_every_step_with_one_function_can_be_tried_again() -> None:
    def attempt(service: Service, result: Any) -> Callable[..., Any]:
        def call(*record: Any) -> Any:
            service(record[-1])
            return result

        return call

    def results(add: Callable[[KStream[Any, str], Callable[..., Any]], KStream[Any, Any] | None], result: Any) -> Any:
        service = Service("x")
        app = Application(lambda stream: add(stream, attempt(service, result)))
        app.pipe(("k", "x"))
        assert app.output.is_empty
        service.refused.clear()
        app.wait(1)
        assert service.calls == ["x", "x"]
        return app.output.read_key_values()

    def called_for_each(one: KStream[Any, str], f: Callable[..., Any]) -> KStream[Any, Any]:
        one.foreach(f, retry=SECONDS)
        return one.filter(lambda key, value: False)

    assert results(lambda one, f: one.filter(f, retry=SECONDS), True) == [("k", "x")]
    assert results(lambda one, f: one.filter_not(f, retry=SECONDS), False) == [("k", "x")]
    assert results(lambda one, f: one.select_key(f, retry=SECONDS), "n") == [("n", "x")]
    assert results(lambda one, f: one.map(f, retry=SECONDS), ("n", "y")) == [("n", "y")]
    assert results(lambda one, f: one.map_values(f, with_key=True, retry=SECONDS), "y") == [("k", "y")]
    assert results(lambda one, f: one.flat_map(f, retry=SECONDS), [("n", "y"), ("m", "z")]) == [("n", "y"), ("m", "z")]
    assert results(lambda one, f: one.flat_map_values(f, retry=SECONDS), ["y", "z"]) == [("k", "y"), ("k", "z")]
    assert results(lambda one, f: one.peek(f, retry=SECONDS), None) == [("k", "x")]
    assert results(called_for_each, None) == []


def test_a_retry_renames_nothing_and_names_its_store_after_the_step() -> None:
    def described(retry: Retry[Any, Any] | None, name: str | None = None) -> str:
        builder = StreamsBuilder()
        builder.stream("in").map_values(str, retry=retry, name=name).filter(lambda key, value: True).to("out")
        return str(builder.build().describe())

    plain = described(None)
    assert described(SECONDS) == plain.replace("stores: []", "stores: [KSTREAM-MAPVALUES-0000000001-retries]", 1)
    assert "stores: [ask-retries]" in described(SECONDS, "ask")


def test_changelogs_of_a_task_with_a_retry_stay_behind() -> None:
    def takes_back(retry: Retry[Any, Any] | None) -> bool:
        builder = StreamsBuilder()
        builder.stream("in").map_values(str, retry=retry).to("out")
        config = StreamsConfig({"application.id": "app", "default.key.serde": TEXT, "default.value.serde": TEXT})
        return builder.build().plan(config).subtopologies[0].takes_back

    assert takes_back(SECONDS)
    assert not takes_back(None)


def test_the_serdes_of_a_retry_come_before_those_of_the_stream() -> None:
    numbers = Retry[Any, Any](key_serde=Serdes.long(), value_serde=Serdes.integer(), jitter=0)
    service = Service("7")

    def add(stream: KStream[Any, str]) -> KStream[Any, Any]:
        counted = stream.map(lambda key, value: (len(value), int(value)))
        return counted.map(lambda key, value: (str(key), service(str(value))), retry=numbers)

    app = Application(add)
    app.pipe(("a", "7"))
    service.refused.clear()
    app.wait(1)
    assert app.output.read_key_values() == [("1", "7")]


def test_that_records_wait_is_said_once_and_that_none_waits_any_more(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pykstreams.processors.retrying")
    service = Service("a1", "b1")
    app = mapped(service)
    app.pipe(("a", "a1"), ("b", "b1"))
    service.refused.clear()
    app.wait(1)

    assert [record.getMessage() for record in caplog.records if "retrying" in record.name] == [
        "KSTREAM-MAPVALUES-0000000001: a record waits to be tried again (not said again until none waits): "
        "ConnectionError('no answer for a1')",
        "KSTREAM-MAPVALUES-0000000001: no record waits to be tried again any more",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_attempts": 0}, "max_attempts is 0; give at least 1, or None for any number"),
        ({"max_waiting": 0}, "max_waiting is 0; at least one record must be allowed to wait"),
        ({"jitter": 1.5}, "jitter is 1.5; it is a share of the back-off, from 0 to 1"),
        ({"factor": 0.5}, "factor is 0.5; a back-off must not get shorter: give at least 1"),
        ({"seed": 2**64}, "seed is 18446744073709551616; give a number of 64 bits"),
        ({"backoff": 0}, "backoff is 0 ms; give at least 1 ms, and at most max_backoff, 60000 ms"),
        ({"max_backoff": 500}, "backoff is 1000 ms; give at least 1 ms, and at most max_backoff, 500 ms"),
        ({"max_time": 0}, "max_time is 0; give at least 1 ms, or None for ever"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as found:
        Retry(**options)
    assert str(found.value) == said


@pytest.mark.parametrize("retry_on", [KeyboardInterrupt, (ValueError, "b"), 5, ()])
def test_errors_to_retry_are_classes_or_a_function(retry_on: Any) -> None:
    with pytest.raises(TypeError, match="expected a class of exceptions, a tuple of such classes, or a function"):
        Retry(retry_on=retry_on)


def test_what_is_no_retry_is_refused() -> None:
    stream: KStream[Any, Any] = StreamsBuilder().stream("in")
    with pytest.raises(TypeError, match="retry is 3; expected a Retry"):
        stream.map_values(str, retry=3)  # type: ignore[call-overload]


def test_pairs_before_an_entry_that_is_no_pair_are_not_sent_with_each_attempt() -> None:
    def pairs(key: str, value: str) -> Any:
        return [(key, value), None]

    app = Application(lambda stream: stream.flat_map(pairs, retry=SECONDS), GO_ON)
    app.input.pipe_input("a", "1")
    for seconds in (1, 2, 4, 8):
        app.wait(seconds)

    assert app.output.is_empty
    assert len(app.dead.read_records()) == 1
