"""Stateless operators hand on what they should, and report what their functions raise."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from pykstreams.core.errors import ProcessingError
from pykstreams.processors import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    ForEach,
    Map,
    MapValues,
    PassThrough,
    Peek,
    SelectKey,
)
from tests.unit.processors.fakes import FakeOperatorContext

HEADERS = (("trace", b"1"),)


def run(operator: Any, *records: tuple[Any, Any], **options: Any) -> FakeOperatorContext:
    """Gives the context after the records, with timestamps 5, 6, 7 ..., went through the operator."""
    context = FakeOperatorContext(**options)
    process = context.start(operator)
    for timestamp, (key, value) in enumerate(records, 5):
        process(key, value, timestamp, HEADERS)
    return context


def boom(*_: object) -> Any:
    raise LookupError("boom")


def test_filter_forwards_records_for_which_the_predicate_holds() -> None:
    context = run(Filter(lambda key, value: value > 1), ("a", 1), ("b", 2))

    assert context.forwarded == [("b", 2, 6, HEADERS)]


def test_negated_filter_forwards_the_other_records() -> None:
    context = run(Filter(lambda key, value: value > 1, negate=True), ("a", 1), ("b", 2))

    assert context.forwarded == [("a", 1, 5, HEADERS)]


@pytest.mark.parametrize("negate", [False, True])
def test_filter_takes_any_true_or_false_value(negate: bool) -> None:
    context = run(Filter(lambda key, value: value, negate=negate), ("a", ""), ("b", "x"))

    assert [key for key, *_ in context.forwarded] == ["a" if negate else "b"]


def test_map_gives_a_new_key_and_value_and_keeps_timestamp_and_headers() -> None:
    context = run(Map(lambda key, value: (value, key)), ("a", 1))

    assert context.forwarded == [(1, "a", 5, HEADERS)]


def test_map_takes_any_pair() -> None:
    def as_list(key: Any, value: Any) -> Any:
        return [value, key]

    context = run(Map(as_list), ("a", 1))

    assert context.forwarded == [(1, "a", 5, HEADERS)]


@pytest.mark.parametrize("result", [None, 3, (), ("a",), ("a", "b", "c")])
def test_map_reports_a_result_that_is_no_pair(result: object) -> None:
    context = run(Map(lambda key, value: result), ("a", 1))  # type: ignore[arg-type, return-value]

    ((error, *record),) = context.failed
    assert isinstance(error, TypeError)
    assert f"returned {result!r}; expected a pair (key, value)" in str(error)
    assert "test_map_reports_a_result_that_is_no_pair" in str(error)
    assert record == ["a", 1, 5, HEADERS]
    assert context.forwarded == []


def test_select_key_keeps_the_value() -> None:
    context = run(SelectKey(lambda key, value: value["id"]), ("a", {"id": 3}))

    assert context.forwarded == [(3, {"id": 3}, 5, HEADERS)]


def test_map_values_maps_null_values_too() -> None:
    context = run(MapValues(repr), ("a", None), ("b", 1))

    assert context.forwarded == [("a", "None", 5, HEADERS), ("b", "1", 6, HEADERS)]


def test_map_values_with_key_sees_the_key() -> None:
    context = run(MapValues(lambda key, value: f"{key}{value}", with_key=True), ("a", 1))

    assert context.forwarded == [("a", "a1", 5, HEADERS)]


def test_flat_map_forwards_each_pair_in_order() -> None:
    context = run(FlatMap(lambda key, value: [(key, part) for part in value]), ("a", "xy"), ("b", ""))

    assert context.forwarded == [("a", "x", 5, HEADERS), ("a", "y", 5, HEADERS)]


def test_flat_map_function_that_raises_half_way_has_no_output() -> None:
    def pairs(key: str, value: str) -> Iterator[tuple[str, str]]:
        yield key, value
        raise LookupError("half-way")

    context = run(FlatMap(pairs), ("a", "x"))

    assert context.forwarded == []
    assert [(str(error), *record) for error, *record in context.failed] == [("half-way", "a", "x", 5, HEADERS)]


def test_flat_map_reports_a_result_of_none() -> None:
    context = run(FlatMap(lambda key, value: None), ("a", 1))  # type: ignore[arg-type, return-value]

    ((error, *record),) = context.failed
    assert "returned None; expected an iterable of pairs (key, value)" in str(error)
    assert record == ["a", 1, 5, HEADERS]


def test_flat_map_reports_an_entry_that_is_no_pair() -> None:
    context = run(FlatMap(lambda key, value: [(key, 1), None, (key, 2)]), ("a", 1))  # type: ignore[list-item]

    ((error, *_),) = context.failed
    assert "returned None; expected a pair (key, value)" in str(error)
    assert context.forwarded == [("a", 1, 5, HEADERS)]


def test_flat_map_that_is_tried_again_forwards_nothing_where_an_entry_is_no_pair() -> None:
    flat_map: FlatMap[Any, Any] = FlatMap(lambda key, value: [(key, 1), value], all_or_nothing=True)
    context = run(flat_map, ("a", None), ("b", ["c", 2]))

    ((error, *record),) = context.failed
    assert "returned None; expected a pair (key, value)" in str(error)
    assert record == ["a", None, 5, HEADERS]
    assert context.forwarded == [("b", 1, 6, HEADERS), ("c", 2, 6, HEADERS)]


def test_flat_map_values_keeps_the_key() -> None:
    context = run(FlatMapValues(str.split), ("a", "x y"), ("b", ""))

    assert context.forwarded == [("a", "x", 5, HEADERS), ("a", "y", 5, HEADERS)]


def test_flat_map_values_with_key_sees_the_key() -> None:
    context = run(FlatMapValues(lambda key, value: (key, value), with_key=True), ("a", 1))

    assert context.forwarded == [("a", "a", 5, HEADERS), ("a", 1, 5, HEADERS)]


@pytest.mark.parametrize("with_key", [False, True])
def test_flat_map_values_reports_a_result_of_none(with_key: bool) -> None:
    context = run(FlatMapValues(lambda *_: None, with_key=with_key), ("a", 1))  # type: ignore[arg-type]  # None is no iterable

    ((error, *_),) = context.failed
    assert "returned None; expected an iterable of values" in str(error)


def test_peek_calls_the_action_before_the_record_goes_on() -> None:
    seen: list[tuple[str, int, int]] = []
    context = FakeOperatorContext()
    process = context.start(Peek(lambda key, value: seen.append((key, value, len(context.forwarded)))))

    process("a", 1, 5, HEADERS)

    assert seen == [("a", 1, 0)]
    assert context.forwarded == [("a", 1, 5, HEADERS)]


def test_for_each_calls_the_action_and_ends_the_record() -> None:
    seen: list[tuple[str, int]] = []
    context = run(ForEach(lambda key, value: seen.append((key, value))), ("a", 1))

    assert seen == [("a", 1)]
    assert context.forwarded == []


def test_pass_through_is_its_child() -> None:
    context = FakeOperatorContext()

    assert PassThrough().build(context) is context.children["child"]


def test_branch_hands_each_record_to_the_first_predicate_that_holds() -> None:
    branch: Branch[str, int] = Branch((lambda key, value: value > 5, lambda key, value: value > 1), ("large", "medium"))
    context = run(branch, ("a", 9), ("b", 2), ("c", 0), children=("medium", "large"))

    assert context.received == {"large": [("a", 9, 5, HEADERS)], "medium": [("b", 2, 6, HEADERS)]}
    assert context.dropped == []


def test_branch_without_a_holding_predicate_goes_to_the_default() -> None:
    branch: Branch[str, int] = Branch((lambda key, value: value > 5, None), ("large", "rest"))
    context = run(branch, ("a", 9), ("b", 2), children=("large", "rest"))

    assert context.received == {"large": [("a", 9, 5, HEADERS)], "rest": [("b", 2, 6, HEADERS)]}


def test_branch_whose_child_is_missing_ends_the_record() -> None:
    branch: Branch[str, int] = Branch((lambda key, value: value > 5, None), (None, "rest"))
    context = run(branch, ("a", 9), ("b", 2), children=("rest",))

    assert context.received == {"rest": [("b", 2, 6, HEADERS)]}


def test_branch_that_is_only_a_default_gets_every_record() -> None:
    context = run(Branch((None,), ("rest",)), ("a", 9), children=("rest",))

    assert context.forwarded == [("a", 9, 5, HEADERS)]


def test_branch_refuses_predicates_without_child() -> None:
    with pytest.raises(ValueError, match="1 predicates and 0 children; each predicate needs its child"):
        Branch((lambda key, value: True,), ())


def test_branch_refuses_a_default_before_the_end() -> None:
    with pytest.raises(ValueError, match="only the last may be None, the default branch"):
        Branch((None, lambda key, value: True), ("a", "b"))


RAISING = [
    Filter(boom),
    Filter(boom, negate=True),
    Map(boom),
    SelectKey(boom),
    MapValues(boom),
    MapValues(boom, with_key=True),
    FlatMap(boom),
    FlatMapValues(boom),
    FlatMapValues(boom, with_key=True),
    Peek(boom),
    ForEach(boom),
    Branch((boom,), ("child",)),
]


@pytest.mark.parametrize("operator", RAISING, ids=lambda operator: type(operator).__name__)
def test_function_that_raises_is_reported_with_the_record_of_the_node_and_has_no_output(
    operator: Any,
) -> None:
    context = run(operator, ("a", 1))

    ((error, *record),) = context.failed
    assert isinstance(error, LookupError)
    assert record == ["a", 1, 5, HEADERS]
    assert context.forwarded == []


@pytest.mark.parametrize("operator", RAISING, ids=lambda operator: type(operator).__name__)
def test_function_that_raises_stops_the_record_when_the_handler_says_to_fail(operator: Any) -> None:
    with pytest.raises(ProcessingError, match="NODE failed"):
        run(operator, ("a", 1), failing=True)


FORWARDING = [
    Filter(lambda key, value: True),
    Filter(lambda key, value: False, negate=True),
    Map(lambda key, value: (key, value)),
    SelectKey(lambda key, value: key),
    MapValues(lambda value: value),
    MapValues(lambda key, value: value, with_key=True),
    FlatMap(lambda key, value: [(key, value)]),
    FlatMapValues(lambda value: [value]),
    FlatMapValues(lambda key, value: [value], with_key=True),
    Peek(lambda key, value: None),
    PassThrough(),
    Branch((lambda key, value: True,), ("child",)),
]


@pytest.mark.parametrize("operator", FORWARDING, ids=lambda operator: type(operator).__name__)
def test_error_of_a_node_further_down_is_not_reported_again(operator: Any) -> None:
    context = FakeOperatorContext()
    context.child_error = OSError("further down")
    process = context.start(operator)

    with pytest.raises(OSError, match="further down"):
        process("a", 1, 5, HEADERS)
    assert context.failed == []


async def check(key: object, value: object) -> bool:
    return False


async def checks(key: object, value: object) -> AsyncIterator[bool]:
    yield False


@pytest.mark.parametrize("function", [check, checks])
@pytest.mark.parametrize("operator", [Filter, lambda function: Filter(function, negate=True)])
def test_filter_reports_a_coroutine_which_is_always_true(function: Any, operator: Any) -> None:
    """A lambda that gives it cannot be told from others when it is given to the step."""
    context = run(operator(lambda key, value: function(key, value)), ("a", 1))

    ((error, *record),) = context.failed
    assert isinstance(error, TypeError)
    assert re.search(r"<lambda>.* returned <(coroutine|async_generator) object .*>, which is always true", str(error))
    assert "await it in map_values_async of the stream first, and decide by the value that comes of it" in str(error)
    assert record == ["a", 1, 5, HEADERS]
    assert context.forwarded == []


def test_branch_reports_a_coroutine() -> None:
    def unawaited(key: object, value: object) -> Any:
        return check(key, value)

    operator: Branch[str, int] = Branch((unawaited,), ("yes",))
    context = run(operator, ("a", 1), children=("yes",))

    ((error, *_),) = context.failed
    assert "which is always true" in str(error)
    assert context.forwarded == []


@pytest.mark.parametrize("operator", [Peek, ForEach])
def test_action_that_gives_a_coroutine_is_reported(operator: Any) -> None:
    """Nobody awaits it, so nothing would be done."""
    context = run(operator(lambda key, value: check(key, value)), ("a", 1))

    ((error, *_),) = context.failed
    assert "returned <coroutine object" in str(error)
    assert "use map_values_async of the stream in place of this step" in str(error)
    assert context.forwarded == []


@pytest.mark.parametrize("operator", [Peek, ForEach])
def test_action_may_return_anything_else(operator: Any) -> None:
    assert run(operator(lambda key, value: value), ("a", 1)).failed == []


@pytest.mark.parametrize("result", ["ab", b"ab"])
def test_text_is_no_pair_and_not_several(result: Any) -> None:
    """Text of two characters could be taken apart, as could any text where several values are wanted."""
    for operator, wanted in (
        (Map(lambda key, value: result), "a pair (key, value)"),
        (FlatMap(lambda key, value: result), "an iterable of pairs (key, value)"),
        (FlatMap(lambda key, value: result, all_or_nothing=True), "an iterable of pairs (key, value)"),
        (FlatMap(lambda key, value: [result]), "a pair (key, value)"),
        (FlatMap(lambda key, value: [result], all_or_nothing=True), "a pair (key, value)"),
        (FlatMapValues(lambda value: result), "an iterable of values"),
        (FlatMapValues(lambda key, value: result, with_key=True), "an iterable of values"),
    ):
        context = run(operator, ("a", 1))

        ((error, *_),) = context.failed
        assert isinstance(error, TypeError)
        assert "<lambda>" in str(error)
        assert f"returned {result!r}; expected {wanted}" in str(error)
        assert context.forwarded == []
