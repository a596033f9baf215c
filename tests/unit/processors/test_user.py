"""Processors of the Processor API inside the compiled path."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pykstreams.core.errors import ProcessingError, StreamsError
from pykstreams.core.processor import FixedKeyProcessor, Processor, ProcessorContext, PunctuationType
from pykstreams.core.record import FixedKeyRecord, Record
from pykstreams.processors import UserFixedKeyProcessor, UserProcessor
from pykstreams.testing import MockProcessorContext
from tests.unit.processors.fakes import FakeOperatorContext

HEADERS = (("trace", b"1"),)


class Log(Processor[Any, Any, Any, Any]):
    """Keeps what happens to it, and forwards records as they came."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        made.append(self)

    def init(self, context: Any) -> None:
        super().init(context)
        self.log.append("init")

    def process(self, record: Record[Any, Any]) -> None:
        self.log.append(record)
        self.context.forward(record)

    def close(self) -> None:
        self.log.append("close")


class FixedLog(FixedKeyProcessor[Any, Any, Any]):
    def __init__(self) -> None:
        self.log: list[Any] = []
        made.append(self)

    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        self.log.append(record)
        self.context.forward(record.replace(value=record.value + 1))


made: list[Any] = []


@pytest.fixture(autouse=True)
def _forget_processors() -> None:
    made.clear()


class To(Processor[Any, Any, Any, Any]):
    """Forwards each record to the child named by its value."""

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record, record.value)


class FixedTo(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        self.context.forward(record, record.value)


class Raising(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        raise LookupError("boom")


class FixedRaising(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        raise LookupError("boom")


def test_processor_is_initialized_gets_records_and_is_closed() -> None:
    context = FakeOperatorContext()
    process = context.start(UserProcessor(Log))
    process("a", 1, 5, HEADERS)
    context.close()

    assert made[-1].log == ["init", Record("a", 1, 5, HEADERS), "close"]
    assert context.forwarded == [("a", 1, 5, HEADERS)]


def test_fixed_key_processor_gets_fixed_key_records() -> None:
    context = FakeOperatorContext()
    context.start(UserFixedKeyProcessor(FixedLog))("a", 1, 5, HEADERS)

    assert made[-1].log == [FixedKeyRecord("a", 1, 5, HEADERS)]
    assert context.forwarded == [("a", 2, 5, HEADERS)]


class Returning(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> Any:
        return record if record.value else record.key


class FixedReturning(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: FixedKeyRecord[Any, Any]) -> Any:
        return record if record.value else record.key


@pytest.mark.parametrize(
    ("node", "name"),
    [(UserProcessor(Returning), "Returning"), (UserFixedKeyProcessor(FixedReturning), "FixedReturning")],
)
def test_a_record_that_is_returned_and_not_forwarded_is_warned_of_once(
    node: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    context = FakeOperatorContext()
    process = context.start(node)
    process("a", 0, 5, HEADERS)  # a value that is returned by the way, such as that of a put, means nothing
    assert caplog.messages == []
    process("a", 1, 5, HEADERS)
    process("a", 2, 5, HEADERS)

    assert context.forwarded == []
    assert caplog.messages == [
        f"{context.node}: {name}.process returned a record, which nobody takes; hand it on by "
        "self.context.forward(record)"
    ]


def received(*given: tuple[Any, ...]) -> list[Any]:
    """The records that a fixed-key processor gets."""
    context = FakeOperatorContext()
    process = context.start(UserFixedKeyProcessor(FixedLog))
    for record in given:
        process(*record)
    return list(made[-1].log)


class Forwarding(FixedKeyProcessor[Any, Any, Any]):
    """Forwards the value of each record."""

    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        self.context.forward(record.value)


@pytest.mark.parametrize(
    "forwarded", [Record("b", 2, 5), Record("a", 1, 5), FixedKeyRecord("b", 2, 5), FixedKeyRecord("a", 1, 5)]
)
def test_fixed_key_processor_forwards_no_record_that_it_has_made_itself(forwarded: Any) -> None:
    """Its key may be another one, which belongs to another partition."""
    context = FakeOperatorContext(children=("one",))
    context.start(UserFixedKeyProcessor(Forwarding))("a", forwarded, 5, HEADERS)

    ((error, *_),) = context.failed
    assert isinstance(error, StreamsError)
    assert str(error) == (
        f"NODE forwards a {type(forwarded).__name__} that was made by hand; a FixedKeyProcessor forwards the records "
        "that it gets, with other values by record.replace(value=...); use KStream.process to forward other keys"
    )
    assert context.received == {"one": []}


def test_fixed_key_processor_forwards_a_record_that_it_has_kept_with_the_key_of_that_one() -> None:
    (kept,) = received(("b", 1, 4, ()))
    context = FakeOperatorContext()

    context.start(UserFixedKeyProcessor(Forwarding))("a", kept.replace(value=7).replace(timestamp=9), 5, HEADERS)

    assert context.failed == []
    assert context.forwarded == [("b", 7, 9, ())]


def test_the_key_of_a_fixed_key_record_cannot_be_set() -> None:
    for record in (*received(("a", 1, 5, ())), FixedKeyRecord("a", 1, 5)):
        with pytest.raises(AttributeError):
            record.key = "b"
        with pytest.raises(TypeError):
            dataclasses.replace(record, key="b")

        assert record.key == "a"


def test_every_task_has_a_processor_of_its_own() -> None:
    operator = UserProcessor(Log)
    made.clear()
    for _ in range(2):
        FakeOperatorContext().start(operator)

    assert len({id(processor) for processor in made}) == 2


@pytest.mark.parametrize("operator", [UserProcessor(To), UserFixedKeyProcessor(FixedTo)])
def test_forward_without_name_reaches_all_children_and_with_name_only_one(operator: Any) -> None:
    context = FakeOperatorContext(children=("one", "two"))
    process = context.start(operator)
    process("a", None, 5, HEADERS)
    process("b", "two", 6, HEADERS)

    assert context.received == {
        "one": [("a", None, 5, HEADERS)],
        "two": [("a", None, 5, HEADERS), ("b", "two", 6, HEADERS)],
    }


@pytest.mark.parametrize("operator", [UserProcessor(To), UserFixedKeyProcessor(FixedTo)])
def test_forward_to_an_unknown_child_is_an_error_that_names_the_children(operator: Any) -> None:
    context = FakeOperatorContext(children=("one", "two"))
    context.start(operator)("a", "three", 5, HEADERS)

    ((error, *_),) = context.failed
    assert isinstance(error, StreamsError)
    assert str(error) == ("NODE forwards to 'three', which is not connected to it; its children are: 'one', 'two'")


class Forwards(Processor[Any, Any, Any, Any]):
    """Forwards what it is given as the value of a record, a tuple of arguments."""

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(*record.value)


@pytest.mark.parametrize(
    ("forwarded", "given"),
    [
        (("tea",), "'tea'"),
        ((None,), "None"),
        (("ann", "one"), "'ann'"),
        (("ann", 250), "'ann', 250"),
        (("k", [1]), "'k', [1]"),
    ],
)
def test_forward_of_what_is_no_record_is_an_error_that_says_what_to_forward(forwarded: Any, given: str) -> None:
    context = FakeOperatorContext(children=("one", "two"))
    context.start(UserProcessor(Forwards))("a", forwarded, 5, HEADERS)

    ((error, *_),) = context.failed
    assert str(error) == (
        f"NODE forwards {given}; expected a Record, as Record(key, value, record.timestamp) or "
        "record.replace(value=...), and behind it the name of a child at most"
    )
    assert not any(context.received.values())


def test_attribute_that_a_step_below_does_not_find_is_the_error_of_that_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def below(context: object, key: object, value: Any, timestamp: int, headers: object) -> None:
        value.headers()

    monkeypatch.setattr(FakeOperatorContext, "forward", below)
    context = FakeOperatorContext()
    context.start(UserProcessor(Forwards))("a", (Record("a", "b", 5),), 5, HEADERS)

    ((error, *_),) = context.failed
    assert str(error) == "'str' object has no attribute 'headers'"


def test_forward_to_a_name_without_any_children_says_so() -> None:
    context = FakeOperatorContext(children=())
    context.start(UserProcessor(To))("a", "x", 5, HEADERS)

    assert str(context.failed[0][0]).endswith("its children are: none")


@pytest.mark.parametrize("operator", [UserProcessor(Raising), UserFixedKeyProcessor(FixedRaising)])
def test_process_that_raises_is_reported_with_the_record_of_the_node(operator: Any) -> None:
    context = FakeOperatorContext()
    context.start(operator)("a", 1, 5, HEADERS)

    ((error, *record),) = context.failed
    assert isinstance(error, LookupError)
    assert record == ["a", 1, 5, HEADERS]


@pytest.mark.parametrize("operator", [UserProcessor(To), UserFixedKeyProcessor(FixedTo)])
def test_error_that_a_node_further_down_has_reported_passes_unchanged(operator: Any) -> None:
    context = FakeOperatorContext()
    context.child_error = ProcessingError("reported below", node="OTHER")
    process = context.start(operator)

    with pytest.raises(ProcessingError, match="reported below"):
        process("a", None, 5, HEADERS)
    assert context.failed == []


@pytest.mark.parametrize(("operator", "kept"), [(UserProcessor, To), (UserFixedKeyProcessor, FixedTo)])
def test_processor_context_answers_as_the_runtime_does(operator: Any, kept: Any) -> None:
    processors: list[Any] = []

    def supplier() -> Any:
        processors.append(kept())
        return processors[-1]

    runtime = FakeOperatorContext()
    runtime.start(operator(supplier))
    context, processing = processors[-1].context, runtime.processing

    names = [
        "application_id",
        "task_id",
        "record_metadata",
        "key_serde",
        "value_serde",
        "state_dir",
        "metrics",
        "app_configs",
    ]
    assert [getattr(context, name) for name in names] == [getattr(processing, name) for name in names]
    assert context.get_state_store("s") == "store s"
    assert context.app_configs_with_prefix("app.") == {"color": "red", "prefix": "app."}
    assert (context.current_system_time_ms(), context.current_stream_time_ms()) == (11, 12)
    assert context.schedule(10, PunctuationType.STREAM_TIME, print, start_time=3) is processing.scheduled
    context.commit()
    assert processing.calls == [
        ("schedule", 10, PunctuationType.STREAM_TIME, print, {"start_time": 3}),
        ("commit",),
    ]


def test_supplier_that_gives_one_object_twice_is_refused_at_once() -> None:
    shared = To()

    with pytest.raises(ValueError, match=r"gave the same object twice, .*return a new one at each call"):
        UserProcessor(lambda: shared)


def test_processor_in_place_of_its_supplier_is_refused() -> None:
    with pytest.raises(TypeError, match="is no supplier; give a class derived from Processor, or a function"):
        UserProcessor(To())  # type: ignore[arg-type]


def test_supplier_of_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match=r"builtins\.dict gave \{\}; expected a FixedKeyProcessor"):
        UserFixedKeyProcessor(dict)  # type: ignore[arg-type]


def test_supplier_of_the_other_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a FixedKeyProcessor, or give it to process$"):
        UserFixedKeyProcessor(To)  # type: ignore[arg-type]


def test_processor_whose_init_keeps_no_context_is_told_how_to() -> None:
    class Forgetful(To):
        def init(self, context: ProcessorContext[Any, Any]) -> None:
            pass

    with pytest.raises(
        AttributeError, match=r"'Forgetful' object has no attribute 'context'; .* super\(\)\.init"
    ) as told:
        assert Forgetful().context
    with pytest.raises(AttributeError, match=r"^'Forgetful' object has no attribute 'contexts'$"):
        getattr(Forgetful(), "contexts")  # noqa: B009  # a type checker would refuse the name

    assert told.value.name == "context"


async def waits(self: object, record: object) -> None:
    """Would never be awaited."""


def takes_a_pair(self: object, key: str, value: str) -> None:
    """Would be called with a record."""


@pytest.mark.parametrize(("node", "base"), [(UserProcessor, Processor), (UserFixedKeyProcessor, FixedKeyProcessor)])
def test_processor_that_nobody_awaits_is_refused(node: Any, base: Any) -> None:
    with pytest.raises(
        TypeError, match=r"Processor: .*waits \(.*, line \d+\) is defined with 'async def', .*map_values_async"
    ):
        node(type("Waits", (base,), {"process": waits}))


def test_processor_that_takes_no_record_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"Processor: .*takes_a_pair .* takes \(key, value\), and is called with \(record\)"
    ):
        UserProcessor(type("Taken", (Processor,), {"process": takes_a_pair}))


async def never_awaited(now: int) -> None:
    """Would never be awaited."""


def context_of_a_task() -> Any:
    FakeOperatorContext().start(UserProcessor(Log))
    return made[-1].context


@pytest.mark.parametrize(
    ("callback", "said"),
    [
        (None, r"callback is None; expected a function that is called with \(time in ms\)"),
        (lambda: None, r"takes \(\), and is called with \(time in ms\)"),
        (never_awaited, r"never_awaited \(.*\) is defined with 'async def', and this step does not await it; .*def"),
    ],
)
@pytest.mark.parametrize("make_context", [context_of_a_task, MockProcessorContext])
def test_punctuator_that_cannot_be_called_is_refused_when_it_is_scheduled(
    make_context: Callable[[], Any], callback: Any, said: str
) -> None:
    with pytest.raises(TypeError, match=rf"schedule: .*{said}"):
        make_context().schedule(10, PunctuationType.STREAM_TIME, callback)


@pytest.mark.parametrize("make_context", [context_of_a_task, MockProcessorContext])
def test_schedule_by_no_time_is_refused(make_context: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="type of a punctuation is 'stream_time'; expected a member of PunctuationType"):
        make_context().schedule(10, "stream_time", print)


def test_partial_is_a_supplier_and_is_named_in_errors() -> None:
    UserProcessor(partial(To))

    with pytest.raises(TypeError, match=r"partial of builtins\.dict gave"):
        UserProcessor(partial(dict, a=1))  # type: ignore[arg-type]
