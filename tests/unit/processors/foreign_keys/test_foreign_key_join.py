"""The operators of the foreign-key join, each alone: what they send, keep and answer, and what they drop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pykstreams import Serdes
from pykstreams.core.hashing import murmur3_128
from pykstreams.core.types import Headers
from pykstreams.processors import (
    ForeignKeyResolver,
    ForeignKeySerdes,
    ForeignTableJoin,
    RightRowCheck,
    StoredView,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)
from pykstreams.serdes import Instruction, SubscriptionResponseWrapper, SubscriptionWrapper, SubscriptionWrapperSerde
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore
from tests.unit.processors.store_fakes import FakeSubscriptions

TEXT = Serdes.string()
SERDES = ForeignKeySerdes("placed-topic", TEXT, TEXT, TEXT)
FORGET, FORGET_AND_ANSWER, ANSWER, ANSWER_IF_THERE = Instruction
HEADERS: Headers = (("h", b"1"),)


def foreign_key(key: str, value: str) -> str | None:
    return value.partition("|")[0] or None


def sent(left: bool, new: str | None, old: str | None, *, repeated: bool = False) -> list[tuple[Any, Instruction]]:
    """What a change makes the left side send: foreign keys and instructions."""
    context = FakeOperatorContext()
    context.current.replayed = repeated
    process = context.start(SubscriptionSend(foreign_key, SERDES, left))
    process("1", (new, old, True), 5, HEADERS)
    for _, message, timestamp, headers in context.forwarded:
        hashed = None if new is None else murmur3_128(new.encode())
        assert message == SubscriptionWrapper(hashed, message.instruction, "1", 1)
        assert (timestamp, headers) == (5, HEADERS)
    return [(foreign, message.instruction) for foreign, message, _, _ in context.forwarded]


@pytest.mark.parametrize(
    ("new", "old", "inner", "left"),
    [
        ("x|1", None, [("x", ANSWER_IF_THERE)], [("x", ANSWER)]),
        ("x|2", "x|1", [("x", ANSWER_IF_THERE)], [("x", ANSWER)]),
        ("y|1", "x|1", [("x", FORGET), ("y", ANSWER)], [("x", FORGET), ("y", ANSWER)]),
        ("|1", "x|1", [("x", FORGET_AND_ANSWER)], [("x", FORGET), (None, ANSWER)]),
        ("x|1", "|1", [("x", ANSWER_IF_THERE)], [("x", ANSWER)]),
        ("|1", None, [], [(None, ANSWER)]),
        (None, "x|1", [("x", FORGET_AND_ANSWER)], [("x", FORGET), (None, ANSWER)]),
        (None, "|1", [], [(None, ANSWER)]),
        (None, None, [], []),
    ],
)
def test_a_change_of_a_left_row_sends(new: Any, old: Any, inner: Any, left: Any) -> None:
    assert inner == sent(False, new, old)
    assert left == sent(True, new, old)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(
    ("row", "expected"),
    [("x|1", ("x", ANSWER)), ("|1", (None, ANSWER)), (None, (None, ANSWER))],
)
def test_a_change_to_what_a_worker_that_died_has_stored_asks_in_any_case(left: bool, row: Any, expected: Any) -> None:
    """What was sent then may be lost, and the result may be that of a foreign key that nobody knows any more."""
    assert [expected] == sent(left, row, row, repeated=True)


def test_an_extractor_that_raises_for_a_repeated_change_fails_with_it() -> None:
    context = FakeOperatorContext()
    context.current.replayed = True
    context.start(SubscriptionSend(lambda key, value: {}[value], SERDES, False))("1", ("x", "x", True), 5, HEADERS)

    assert [type(error) for error, *_ in context.failed] == [KeyError]
    assert context.forwarded == []


@pytest.mark.parametrize("left", [False, True])
def test_a_change_of_a_versioned_table_older_than_the_newest_of_its_row_is_dropped(left: bool) -> None:
    context = FakeOperatorContext()
    context.start(SubscriptionSend(foreign_key, SERDES, left, versioned=True))("1", ("x|1", None, False), 5, ())

    assert context.forwarded == []
    assert context.dropped == ["a change to join is older than the newest of its row"]


@pytest.mark.parametrize("left", [False, True])
def test_an_extractor_that_raises_fails_with_the_change_and_sends_nothing(left: bool) -> None:
    def fails(key: str, value: str) -> str:
        return {"x|1": "x"}[value]

    context = FakeOperatorContext()
    context.start(SubscriptionSend(fails, SERDES, left))("1", ("bad", "x|1", True), 5, HEADERS)

    ((error, *record),) = context.failed
    assert isinstance(error, KeyError)
    assert record == ["1", ("bad", "x|1", True), 5, HEADERS]
    assert context.forwarded == []


def asking(instruction: Instruction, *, version: int = 1) -> SubscriptionWrapper[str]:
    return SubscriptionWrapper(b"h" * 16, instruction, "1", 3 if version else None, version)


def test_subscriptions_are_kept_in_the_bytes_in_which_they_came_and_forgotten_again() -> None:
    store = FakeSubscriptions()
    context = FakeOperatorContext(subscriptions=store)
    process = context.start(SubscriptionReceive("subscriptions", SERDES))
    for version in (0, 1):
        process("x", asking(ANSWER, version=version), 5, HEADERS)
        kept = dict(store.rows)
        process("x", asking(FORGET), 6, ())

        value = SubscriptionWrapperSerde(TEXT).serialize("t", asking(ANSWER, version=version))
        assert kept == {b"\0\0\0\1x1": (value, 5, HEADERS)}
        assert store.rows == {}
    assert [(key, message.instruction) for key, message, _, _ in context.forwarded] == [
        ("x", ANSWER),
        ("x", FORGET),
    ] * 2


def test_a_subscription_without_foreign_key_is_not_kept_and_goes_on_only_if_it_wants_an_answer() -> None:
    store = FakeSubscriptions()
    context = FakeOperatorContext(subscriptions=store)
    process = context.start(SubscriptionReceive("subscriptions", SERDES))
    for instruction in (ANSWER, ANSWER_IF_THERE):
        process(None, asking(instruction), 5, ())

    assert store.rows == {}
    assert [message.instruction for _, message, _, _ in context.forwarded] == [ANSWER]
    assert context.dropped == ["the foreign key of a row to join is null"]


@pytest.mark.parametrize(
    ("instruction", "there", "missing"),
    [
        (ANSWER, [("X", 7)], [(None, 5)]),
        (ANSWER_IF_THERE, [("X", 7)], []),
        (FORGET_AND_ANSWER, [(None, 7)], [(None, 5)]),
        (FORGET, [], []),
    ],
)
def test_a_subscription_is_answered_with_the_right_row_and_the_larger_time(
    instruction: Instruction, there: Any, missing: Any
) -> None:
    found = {}
    for foreign in ("x", "y"):
        context = FakeOperatorContext(rows=HandedOn({"x": ("X", 7)}))
        context.start(SubscriptionJoin(StoredView("rows"), SERDES))(foreign, asking(instruction), 5, HEADERS)
        assert all(key == "1" and headers is HEADERS for key, _, _, headers in context.forwarded)
        assert all((answer.hash, answer.primary_partition) == (b"h" * 16, 3) for _, answer, _, _ in context.forwarded)
        found[foreign] = [(answer.value, time) for _, answer, time, _ in context.forwarded]

    assert found == {"x": there, "y": missing}


def test_a_repeated_subscription_is_answered_although_the_row_that_it_met_is_gone() -> None:
    context = FakeOperatorContext(rows=HandedOn({}))
    context.current.replayed = True
    context.start(SubscriptionJoin(StoredView("rows"), SERDES))("y", asking(ANSWER_IF_THERE), 5, HEADERS)

    assert [answer.value for _, answer, _, _ in context.forwarded] == [None]


class HandedOn(FakeStore):
    """A store that is read as it was last handed on."""

    def __init__(self, rows: dict[Any, tuple[Any, int]]) -> None:
        super().__init__()
        self.rows = rows

    def reader_below_cache(self) -> Any:
        return self.get_row


def fan_out(
    check: RightRowCheck | None = None, *, versioned: bool = False, **more: Any
) -> tuple[FakeOperatorContext, Any]:
    store = FakeSubscriptions()
    for primary, foreign, version in (("1", "x", 1), ("2", "x", 0), ("3", "xx", 1)):
        message = SubscriptionWrapper(b"h" * 16, ANSWER, primary, 2 if version else None, version)
        raw = SubscriptionWrapperSerde(TEXT).serialize("t", message)
        key = len(foreign).to_bytes(4, "big") + foreign.encode() + primary.encode()
        store.put_subscription(key, raw, 1, ())
    context = FakeOperatorContext(subscriptions=store, **more)
    operator = ForeignTableJoin("subscriptions", SERDES, check or RightRowCheck(frozenset()), versioned)
    return context, context.start(operator)


@pytest.mark.parametrize("new", ["X2", None])
def test_a_change_of_a_right_row_is_told_to_all_that_have_subscribed_to_its_key(new: str | None) -> None:
    context, process = fan_out()
    process("x", (new, "X", True), 9, HEADERS)

    assert context.forwarded == [
        ("1", SubscriptionResponseWrapper(b"h" * 16, new, 2), 9, HEADERS),
        ("2", SubscriptionResponseWrapper(b"h" * 16, new, None), 9, HEADERS),
    ]


def test_a_versioned_right_row_without_key_or_older_than_the_newest_is_dropped() -> None:
    context, process = fan_out(versioned=True)
    process(None, ("X", None, True), 9, ())
    process("x", ("X", None, False), 9, ())

    assert context.forwarded == []
    assert context.dropped == [
        "the key of a row to join is null",
        "a change to join is older than the newest of its row",
    ]


def resolved(answer: SubscriptionResponseWrapper[str], row: str | None, *, left: bool = False) -> FakeOperatorContext:
    rows = {} if row is None else {"1": (row, 3)}
    context = FakeOperatorContext(rows=HandedOn(rows))
    operator: ForeignKeyResolver[str, str, str] = ForeignKeyResolver(
        StoredView("rows"), SERDES, lambda a, b: f"{a}+{b}", left
    )
    context.start(operator)("1", answer, 9, HEADERS)
    return context


def hash_of(value: str) -> bytes:
    return murmur3_128(value.encode())


def test_an_answer_to_the_row_as_it_is_is_joined_with_it() -> None:
    context = resolved(SubscriptionResponseWrapper(hash_of("a"), "X"), "a")

    assert context.forwarded == [("1", "a+X", 9, HEADERS)]


@pytest.mark.parametrize(("left", "result"), [(False, None), (True, "a+None")])
def test_an_answer_without_value_deletes_the_result_or_joins_it_with_none(left: bool, result: str | None) -> None:
    context = resolved(SubscriptionResponseWrapper(hash_of("a"), None), "a", left=left)

    assert context.forwarded == [("1", result, 9, HEADERS)]


def test_the_answer_to_a_deletion_deletes_the_result_of_a_left_join_too() -> None:
    context = resolved(SubscriptionResponseWrapper(None, None), None, left=True)

    assert context.forwarded == [("1", None, 9, HEADERS)]


@pytest.mark.parametrize("row", ["b", None])
def test_an_answer_to_what_the_row_was_is_dropped_and_counted_in_silence(row: str | None) -> None:
    context = resolved(SubscriptionResponseWrapper(hash_of("a"), "X"), row)

    assert (context.forwarded, context.dropped, context.silently_dropped) == ([], [], 1)


def test_a_joiner_that_raises_fails_with_the_answer() -> None:
    answer = SubscriptionResponseWrapper(hash_of("a"), "X")
    context = FakeOperatorContext(rows=HandedOn({"1": ("a", 3)}))
    context.start(ForeignKeyResolver(StoredView("rows"), SERDES, lambda a, b: 1 // 0, False))("1", answer, 9, ())

    ((error, *record),) = context.failed
    assert isinstance(error, ZeroDivisionError)
    assert record == ["1", answer, 9, ()]


# ------------------------------------------------------------ late answers


def both_ends(row: str | None) -> tuple[FakeOperatorContext, FakeOperatorContext, Any]:
    """The sending and the resolving end of an inner join in one task, with the left row as it is; and the resolver."""
    sending = FakeOperatorContext()
    resolving = FakeOperatorContext(rows=HandedOn({} if row is None else {"1": (row, 3)}))
    resolving.in_common = sending.in_common
    sending.start(SubscriptionSend(foreign_key, SERDES, False))
    operator: ForeignKeyResolver[str, str, str] = ForeignKeyResolver(
        StoredView("rows"), SERDES, lambda a, b: f"{a}+{b}", False
    )
    return sending, resolving, resolving.start(operator)


def test_a_stale_answer_without_value_makes_the_row_be_asked_for_anew() -> None:
    """The right row was deleted; its left row changed meanwhile, and asked for no answer if there is none."""
    sending, resolving, resolve = both_ends("x|2")
    resolve("1", SubscriptionResponseWrapper(hash_of("x|1"), None), 9, HEADERS)

    assert resolving.forwarded == []
    assert sending.forwarded == [("x", SubscriptionWrapper(hash_of("x|2"), ANSWER, "1", 1), 3, HEADERS)]


def test_a_row_without_foreign_key_has_no_result_whatever_a_stale_answer_was_for() -> None:
    sending, resolving, resolve = both_ends("|2")
    resolve("1", SubscriptionResponseWrapper(hash_of("x|1"), None), 9, HEADERS)

    assert sending.forwarded == []
    assert resolving.forwarded == [("1", None, 9, HEADERS)]


def test_a_row_deleted_after_its_foreign_key_loses_its_result_when_the_answer_comes() -> None:
    """Nothing is sent when it is deleted, so the answer to the loss of the foreign key is the last to come; perhaps to
    another worker, which knows of the row that it is gone.
    """
    _, resolving, resolve = both_ends(None)
    resolve("1", SubscriptionResponseWrapper(hash_of("|1"), None), 9, HEADERS)

    assert resolving.forwarded == [("1", None, 9, HEADERS)]


# ------------------------------------------------------------ checks of right rows


def coming(context: FakeOperatorContext, key: bytes, topic: str = "customers") -> None:
    message = SimpleNamespace(topic=lambda: topic, key=lambda: key, partition=lambda: 1, offset=lambda: 4)
    context.current.raw = message, 9, ()


def test_right_rows_that_come_from_elsewhere_are_not_compared() -> None:
    context, process = fan_out(RightRowCheck(frozenset({"customers"})))
    coming(context, b"other", "orders")
    process("x", ("X", None, True), 9, ())

    assert context.failed == []


def test_topics_of_the_application_are_known_by_their_full_names() -> None:
    context, process = fan_out(RightRowCheck(frozenset({"grouped-repartition"})))
    coming(context, b"other", "shop-grouped-repartition")
    process("x", ("X", None, True), 9, ())

    ((error, *_),) = context.failed
    assert "is written as b'other' in topic 'shop-grouped-repartition'" in str(error)


def test_only_the_first_right_row_is_compared_byte_by_byte() -> None:
    context, process = fan_out(RightRowCheck(frozenset({"customers"})))
    for raw in (b"x", b"other"):
        coming(context, raw)
        process("x", ("X", None, True), 9, ())

    assert context.failed == []
