"""The gate between a task and those who read its stores: one at a time, nobody starves, nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.runtime.tasks.gate import MOST_SOON, Gate

PATIENCE_S = 20.0


class Threads:
    """Threads that a test waits for; what one of them raises, the test raises."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []

    def start(self, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        for error in self._errors:
            raise error


@pytest.fixture
def threads() -> Threads:
    return Threads()


def wait_until(gate: Gate, *, readers: int = 0, workers: int = 0) -> None:
    """Waits until so many threads stand before a gate."""
    for _ in range(int(PATIENCE_S * 1000)):
        if (gate._readers, gate._workers) == (readers, workers):
            return
        threading.Event().wait(0.001)
    raise AssertionError(f"{gate._readers} readers and {gate._workers} workers wait")


def test_reader_waits_until_the_batch_is_done(threads: Threads) -> None:
    gate, seen = Gate("task 0_0"), []

    with gate:
        threads.start(lambda: gate.read(lambda: seen.append("read")))
        wait_until(gate, readers=1)
        seen.append("batch")
    threads.join()

    assert seen == ["batch", "read"]
    assert gate.was_waited_for()
    assert not gate.was_waited_for()


def test_reader_that_waits_goes_before_the_next_batch(threads: Threads) -> None:
    gate, seen = Gate("task 0_0"), []

    with gate:
        threads.start(lambda: gate.read(lambda: seen.append("read")))
        wait_until(gate, readers=1)
    with gate:
        seen.append("batch")
    threads.join()

    assert seen == ["read", "batch"]


def test_worker_that_waits_goes_before_readers_that_come_later(threads: Threads) -> None:
    gate, seen, inside = Gate("task 0_0"), [], threading.Event()
    leave = threading.Event()

    def first() -> None:
        inside.set()
        assert leave.wait(PATIENCE_S)

    def batch() -> None:
        with gate:
            seen.append("batch")

    threads.start(lambda: gate.read(first))
    assert inside.wait(PATIENCE_S)
    threads.start(batch)
    wait_until(gate, workers=1)
    threads.start(lambda: gate.read(lambda: seen.append("read")))
    wait_until(gate, readers=1, workers=1)
    leave.set()
    threads.join()

    assert seen == ["batch", "read"]


def test_neither_side_starves_the_other(threads: Threads) -> None:
    """Readers in a loop and a worker in a loop: all of them get as far as they want."""
    gate, value, torn = Gate("task 0_0"), [0, 0], []

    def work() -> None:
        for number in range(300):
            with gate:
                value[0] = number
                value[1] = number

    def read() -> None:
        for _ in range(300):
            first, second = gate.read(lambda: (value[0], value[1]))
            if first != second:
                torn.append((first, second))

    for one in (work, read, read, read):
        threads.start(one)
    threads.join()

    assert torn == []


def test_a_thread_that_is_inside_may_read() -> None:
    gate = Gate("task 0_0")

    with gate, gate:
        found = gate.read(lambda: gate.read(lambda: 5))

    assert found == 5
    assert gate.read(lambda: gate.read(lambda: 6)) == 6


def nothing() -> None:
    pass


def test_a_short_read_is_done_at_once_while_nobody_is_inside() -> None:
    gate, seen = Gate("task 0_0"), list[object]()

    gate.soon(lambda: seen.append(threading.get_ident()), lambda: seen.append("then"), 1)

    assert seen == [threading.get_ident()]
    assert not gate.was_waited_for()


def test_short_reads_that_come_during_a_batch_are_done_by_the_worker_when_it_leaves(threads: Threads) -> None:
    gate, seen = Gate("task 0_0"), list[tuple[str, int]]()

    def note(name: str) -> None:
        seen.append((name, threading.get_ident()))

    def then() -> None:
        note("then")

    with gate:
        for name in ("one", "two"):
            threads.start(partial(gate.soon, partial(note, name), then, 1))
            threads.join()  # they do not wait
        assert seen == []
        assert gate.was_waited_for()
    me = threading.get_ident()
    assert seen == [("one", me), ("two", me), ("then", me)]  # once for both


def test_a_short_read_that_comes_during_another_one_is_done_after_it_and_before_anybody_else(threads: Threads) -> None:
    gate, seen = Gate("task 0_0"), list[str]()

    def first() -> None:
        gate.soon(lambda: seen.append("second"), nothing, 1)
        seen.append("first")

    with gate:
        gate.soon(first, nothing, 1)
        threads.start(lambda: gate.read(lambda: seen.append("read")))
        wait_until(gate, readers=1)
    threads.join()

    assert seen == ["first", "second", "read"]


def test_short_reads_that_come_while_a_worker_hangs_are_taken_up_to_a_number(threads: Threads) -> None:
    """Who asked for them has gone; a worker that comes back would do all of them."""
    gate, done, taken = Gate("task 0_0"), list[int](), list[bool]()

    def ask() -> None:
        taken.extend(gate.soon(partial(done.append, number), nothing, 1) for number in range(MOST_SOON + 3))

    with gate:
        threads.start(ask)
        threads.join()
    again = gate.soon(partial(done.append, -1), nothing, 1)

    assert taken == [True] * MOST_SOON + [False] * 3
    assert again
    assert done == [*range(MOST_SOON), -1]


def test_short_reads_that_are_done_together_count_each(threads: Threads) -> None:
    gate, taken = Gate("task 0_0"), list[bool]()

    def ask() -> None:
        taken.extend(gate.soon(nothing, nothing, reads) for reads in (MOST_SOON - 2, 3, 2, 1))

    with gate:
        threads.start(ask)
        threads.join()

    assert taken == [True, False, True, False]


def test_no_short_read_is_lost_or_meets_another_one(threads: Threads) -> None:
    gate, done, inside = Gate("task 0_0"), list[int](), list[int]()
    overlaps: list[int] = []

    def action(number: int) -> None:
        inside.append(number)
        if len(inside) > 1:
            overlaps.append(number)
        done.append(number)
        inside.pop()

    def ask(first: int) -> None:
        for number in range(first, first + 300):
            gate.soon(partial(action, number), nothing, 1)

    def work() -> None:
        for number in range(300):
            with gate:
                action(-number)

    for one in (work, lambda: ask(1000), lambda: ask(2000), lambda: [gate.read(lambda: action(0)) for _ in range(300)]):
        threads.start(one)
    threads.join()

    assert sorted(one for one in done if one >= 1000) == [*range(1000, 1300), *range(2000, 2300)]
    assert overlaps == []


def test_error_of_a_read_leaves_the_gate_open() -> None:
    gate = Gate("task 0_0")

    with pytest.raises(ZeroDivisionError):
        gate.read(lambda: 1 // 0)

    assert gate.read(lambda: 5) == 5


def test_reader_gives_up_after_a_while_and_holds_nobody_back(threads: Threads) -> None:
    gate = Gate("task 0_0", patience_s=0.01)

    with gate:
        threads.start(lambda: gate.read(lambda: None))
        with pytest.raises(
            InvalidStateStoreError,
            match=r"^task 0_0 could not be read within 0.01 s: its worker is busy with one batch of records; ask "
            "again, and look for a processor that waits, for instance for this very read$",
        ):
            threads.join()
    with gate:
        pass

    assert gate.read(lambda: 5) == 5


def test_once_a_reader_has_waited_in_vain_others_are_refused_at_once_until_the_worker_leaves(threads: Threads) -> None:
    gate, seen = Gate("task 0_0", patience_s=0.01), list[str]()

    def ask() -> None:
        with pytest.raises(InvalidStateStoreError):
            gate.read(lambda: seen.append("waited"))
        gate._patience_s = 100 * PATIENCE_S
        with pytest.raises(InvalidStateStoreError):
            gate.read(lambda: seen.append("did not wait"))

    with gate:
        threads.start(ask)
        threads.join()
    with gate:
        threads.start(lambda: gate.read(lambda: seen.append("read")))
        wait_until(gate, readers=1)
    threads.join()

    assert seen == ["read"]


def test_reader_that_is_interrupted_while_it_waits_holds_nobody_back(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate("task 0_0")

    def interrupted(*_: object) -> bool:
        gate._first = gate._readers  # the worker has come out meanwhile
        raise KeyboardInterrupt

    with gate:
        monkeypatch.setattr(gate._changed, "wait_for", interrupted)
        threads.start(lambda: gate.read(lambda: None))
        with pytest.raises(KeyboardInterrupt):
            threads.join()
    with gate:
        pass

    assert gate.read(lambda: 5) == 5
