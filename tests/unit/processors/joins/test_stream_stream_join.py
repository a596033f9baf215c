"""The operators of a stream-stream join: what they drop, when they look for closed windows, what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.settings.keys import EMIT_INTERVAL_OF_JOINS
from pykstreams.processors import KeepForJoin, StreamSelfJoin, StreamStreamJoin
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import Stores
from pykstreams.state.buffers.waiting import WaitingRecords, waiting_records
from pykstreams.state.spec import StoreBuilder
from tests.unit.processors.fakes import FakeOperatorContext, FakeProcessing
from tests.unit.processors.store_fakes import FakeJoinWindowStore
from tests.unit.state.support import Context

HEADERS = (("trace", b"1"),)
DROPPED = "the key or the value of a record to join is null"


class StreamJoinBench:
    """Both sides of a join with real waiting records; ``left`` and ``right`` take (key, value, time)."""

    def __init__(self, folder: Path, *, interval: int = 0, joiner: Any = None, **options: Any) -> None:
        self.processing = FakeProcessing()
        self.processing.now_ms = 0
        self.processing.app_configs[EMIT_INTERVAL_OF_JOINS] = interval
        self.records: WaitingRecords = StoreBuilder(
            Stores.in_memory_key_value_store("waiting"), waiting_records, StringSerde(), (StringSerde(), StringSerde())
        ).build()
        self.stores = Context(folder)
        self.records.init(self.stores)
        self.windows = {True: FakeJoinWindowStore(), False: FakeJoinWindowStore()}
        self.contexts = {left: self._context(left) for left in (True, False)}
        self.operators = {
            left: context.start(
                StreamStreamJoin(
                    "other",
                    "waiting",
                    joiner or (lambda a, b: f"{a}+{b}"),
                    left=left,
                    **{"outer": True, "before_ms": 5, "after_ms": 5, "grace_ms": 2, **options},
                )
            )
            for left, context in self.contexts.items()
        }

    def _context(self, left: bool) -> FakeOperatorContext:
        context = FakeOperatorContext(other=self.windows[not left], waiting=self.records)
        context.processing = self.processing
        return context

    def left(self, key: Any, value: Any, time: int) -> list[Any]:
        return self._run(True, key, value, time)

    def right(self, key: Any, value: Any, time: int) -> list[Any]:
        return self._run(False, key, value, time)

    def _run(self, left: bool, key: Any, value: Any, time: int) -> list[Any]:
        context = self.contexts[left]
        self.stores.record(time)
        context.forwarded.clear()
        self.operators[left](key, value, time, HEADERS)
        if key is not None and value is not None:
            self.windows[left].put_row(key, time, value, time, HEADERS)
        return [(key, value, time) for key, value, time, _ in context.forwarded]


def inner(*rows: tuple[Any, int, Any], **options: Any) -> FakeOperatorContext:
    context = FakeOperatorContext(other=FakeJoinWindowStore(*rows))
    operator = StreamStreamJoin(
        "other",
        None,
        **{
            "joiner": lambda a, b: f"{a}+{b}",
            "left": True,
            "outer": False,
            "before_ms": 2,
            "after_ms": 4,
            "grace_ms": 0,
            **options,
        },
    )
    context.start(operator)("k", "v", 10, HEADERS)
    return context


def test_a_record_is_forwarded_before_it_is_kept_with_its_headers() -> None:
    store = FakeJoinWindowStore()
    context = FakeOperatorContext(own=store)
    context.start(KeepForJoin("own"))("k", "v", 5, HEADERS)

    assert context.forwarded == [("k", "v", 5, HEADERS)]
    assert store.kept == [("k", 5, "v", 5, HEADERS)]


def test_a_record_without_key_is_forwarded_and_not_kept() -> None:
    store = FakeJoinWindowStore()
    context = FakeOperatorContext(own=store)
    context.start(KeepForJoin("own"))(None, "v", 5, HEADERS)

    assert (len(context.forwarded), store.kept) == (1, [])


def test_a_record_that_cannot_be_kept_fails_here() -> None:
    store = FakeJoinWindowStore()
    store.broken = ValueError("no bytes")
    context = FakeOperatorContext(own=store)
    context.start(KeepForJoin("own"))("k", "v", 5, HEADERS)

    assert context.failed == [(store.broken, "k", "v", 5, HEADERS)]


def test_both_bounds_of_the_window_belong_to_it_and_results_have_the_larger_time_and_the_records_headers() -> None:
    rows = [("k", time, str(time)) for time in (7, 8, 14, 15)]

    assert inner(*rows).forwarded == [("k", "v+8", 10, HEADERS), ("k", "v+14", 14, HEADERS)]


def test_bounds_are_those_of_the_left_side_and_change_places_for_the_right() -> None:
    rows = [("k", time, str(time)) for time in (5, 6, 12, 13)]

    assert inner(*rows, left=False).forwarded == [("k", "6+v", 10, HEADERS), ("k", "12+v", 12, HEADERS)]


@pytest.mark.parametrize(("left", "expected"), [(True, ("k", "v", "w")), (False, ("k", "w", "v"))])
def test_the_joiner_gets_key_left_and_right_if_it_wants_the_key(left: bool, expected: Any) -> None:
    context = inner(("k", 10, "w"), joiner=lambda *parts: parts, with_key=True, left=left)

    assert context.forwarded == [("k", expected, 10, HEADERS)]


@pytest.mark.parametrize(("key", "value"), [(None, "v"), ("k", None), (None, None)])
def test_an_inner_join_drops_records_without_key_or_value(key: Any, value: Any) -> None:
    context = FakeOperatorContext(other=FakeJoinWindowStore())
    operator = StreamStreamJoin("other", None, lambda a, b: a, True, False, 1, 1, 0)
    context.start(operator)(key, value, 5, HEADERS)

    assert (context.forwarded, context.dropped) == ([], [DROPPED])


def test_what_a_joiner_raises_fails_with_the_record_and_earlier_results_stay() -> None:
    def joiner(left: Any, right: Any) -> Any:
        if right == "bad":
            raise ValueError("bad")
        return right

    context = inner(("k", 9, "good"), ("k", 10, "bad"), joiner=joiner)

    assert context.forwarded == [("k", "good", 10, HEADERS)]
    assert [failure[1:] for failure in context.failed] == [("k", "v", 10, HEADERS)]


def test_a_record_without_partner_waits_until_its_window_and_grace_have_passed(tmp_path: Path) -> None:
    join = StreamJoinBench(tmp_path)

    assert join.left("k", "a", 10) == []
    assert join.right("other", "b", 17) == []
    assert join.right("other", "c", 18) == [("k", "a+None", 10)]


def test_a_partner_in_time_ends_the_waiting(tmp_path: Path) -> None:
    join = StreamJoinBench(tmp_path)
    join.left("k", "a", 10)

    assert join.right("k", "b", 15) == [("k", "a+b", 15)]
    assert join.right("z", "c", 90) == []


def test_a_record_that_is_too_late_for_any_partner_has_its_result_at_once(tmp_path: Path) -> None:
    join = StreamJoinBench(tmp_path)
    join.left("z", "a", 20)

    assert join.left("k", "late", 14) == [("k", "late+None", 14)]
    assert join.left("k", "in time", 15) == []


def test_records_of_the_right_side_never_wait_in_a_left_join(tmp_path: Path) -> None:
    join = StreamJoinBench(tmp_path)
    context = join.contexts[False]
    right = context.start(StreamStreamJoin("other", "waiting", lambda a, b: f"{a}+{b}", False, False, 5, 5, 2))
    join.stores.record(10)
    right("k", "b", 10, HEADERS)

    assert list(join.records.scan()) == []


@pytest.mark.parametrize(("outer", "expected"), [(True, [(None, "v+None", 5)]), (False, [])])
def test_a_record_without_key_is_joined_with_nothing_on_an_outer_side_only(
    tmp_path: Path, outer: bool, expected: list[Any]
) -> None:
    join = StreamJoinBench(tmp_path, outer=outer)

    assert join.left(None, "v", 5) == expected
    assert join.contexts[True].dropped == ([] if outer else [DROPPED])


def test_a_record_without_value_is_dropped_and_yet_moves_time_on(tmp_path: Path) -> None:
    join = StreamJoinBench(tmp_path)
    join.left("k", "a", 10)

    assert join.left("k", None, 50) == []
    assert join.contexts[True].dropped == [DROPPED]
    assert join.left("k", "late", 20) == [("k", "late+None", 20)]


def test_somebody_looks_for_closed_windows_once_in_an_interval_of_wall_clock_time(tmp_path: Path) -> None:
    join = StreamJoinBench(tmp_path, interval=1000)
    join.left("k", "a", 10)
    join.left("m", "b", 11)
    join.processing.now_ms = 999
    assert join.left("z", "c", 40) == []

    join.processing.now_ms = 1000
    assert join.left("z", "d", 41) == [("k", "a+None", 10), ("m", "b+None", 11)]


def test_closed_windows_are_looked_for_when_the_clock_is_set_back(tmp_path: Path) -> None:
    join = StreamJoinBench(tmp_path, interval=1000)
    join.processing.now_ms = 5000
    join.left("k", "a", 10)
    join.left("m", "b", 40)

    join.processing.now_ms = 100

    assert join.left("z", "c", 80) == [("k", "a+None", 10), ("m", "b+None", 40)]


def test_only_a_record_that_is_not_late_looks_for_closed_windows(tmp_path: Path) -> None:
    join = StreamJoinBench(tmp_path)
    join.left("k", "a", 10)
    join.operators[False]("z", None, 30, HEADERS)

    assert join.right("z", "late", 29) == []
    assert ("k", "a+None", 10) in join.right("z", "b", 30)


def test_both_sides_have_windows_of_their_own(tmp_path: Path) -> None:
    join = StreamJoinBench(tmp_path, before_ms=0, after_ms=20, grace_ms=0)
    join.left("k", "a", 10)
    join.right("m", "b", 11)

    assert join.right("z", "c", 12) == [("m", "None+b", 11)]
    assert join.right("z", "d", 31) == [("k", "a+None", 10), ("z", "None+c", 12)]


def test_a_joiner_that_fails_on_a_closed_window_leaves_the_record_waiting(tmp_path: Path) -> None:
    def joiner(left: Any, right: Any) -> Any:
        if right is None:
            raise ValueError("no partner")
        return left

    join = StreamJoinBench(tmp_path, joiner=joiner)
    join.left("k", "a", 10)

    assert join.left("z", "b", 50) == []
    assert [failure[1:3] for failure in join.contexts[True].failed] == [("z", "b")]
    assert [record[3:] for record in join.records.scan()] == [("k", "a")]


def test_a_self_join_gives_each_pair_both_ways_and_the_record_with_itself_in_order_of_time() -> None:
    store = FakeJoinWindowStore(("k", 8, "early"), ("k", 12, "late"))
    context = FakeOperatorContext(own=store)
    operator = StreamSelfJoin("own", lambda a, b: f"{a}+{b}", 2, 2, 10)
    context.start(operator)("k", "v", 10, HEADERS)

    assert [(value, time) for _, value, time, _ in context.forwarded] == [
        ("v+early", 10),
        ("v+late", 12),
        ("early+v", 10),
        ("v+v", 10),
        ("late+v", 12),
    ]


def test_a_self_join_does_not_join_a_record_with_itself_that_is_older_than_the_retention() -> None:
    context = FakeOperatorContext(own=FakeJoinWindowStore())
    process = context.start(StreamSelfJoin("own", lambda a, b: f"{a}+{b}", 2, 2, 10))
    process("k", "new", 30, HEADERS)
    process("k", "old", 21, HEADERS)
    process("k", "older", 20, HEADERS)

    assert [value for _, value, _, _ in context.forwarded] == ["new+new"]


@pytest.mark.parametrize(("key", "value"), [(None, "v"), ("k", None)])
def test_a_self_join_drops_records_without_key_or_value(key: Any, value: Any) -> None:
    context = FakeOperatorContext(own=FakeJoinWindowStore())
    context.start(StreamSelfJoin("own", lambda a, b: a, 2, 2, 10))(key, value, 5, HEADERS)

    assert (context.forwarded, context.dropped) == ([], [DROPPED])


def test_a_self_join_fails_with_what_the_joiner_raises() -> None:
    context = FakeOperatorContext(own=FakeJoinWindowStore())
    context.start(StreamSelfJoin("own", lambda a, b: 1 / 0, 2, 2, 10))("k", "v", 5, HEADERS)

    assert [failure[1:] for failure in context.failed] == [("k", "v", 5, HEADERS)]
