"""Workers that come and go while others work: their numbers, who is removed, and what is said of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from pykstreams.core.clock import SystemClock
from pykstreams.runtime.worker.worker import Worker
from pykstreams.runtime.worker_threads import WorkerThreads


class QuickWorker(Worker):
    """A worker that runs until it is stopped, or told to fail; ``on_turn`` is called once on its thread.

    It is a ``Worker`` for the types only: nothing of it is made, so that a method that is not replaced here fails.
    """

    def __init__(self, name: str, on_running: Callable[[bool], None]) -> None:
        self.name = name
        self.on_running = on_running
        self.left: bool | None = None
        self.failure: Exception | None = None
        self.on_turn: Callable[[], None] = lambda: None
        self.is_slow = threading.Event()
        self._stopped = threading.Event()
        self._called = False

    def run(self) -> None:
        while not self._stopped.wait(0.001):
            call, self.on_turn = self.on_turn, lambda: None
            call()
            if self.failure is not None:
                raise self.failure
        while self.is_slow.is_set():
            self.is_slow.wait(0.001)
        if self.failure is not None:
            raise self.failure

    def stop(self, *, leave: bool) -> None:
        self.left = leave
        self._stopped.set()


class ThreadsBench:
    """Threads of quick workers; it takes note of everything that is said of them."""

    def __init__(self) -> None:
        self.made: list[QuickWorker] = []
        self.counts: list[int] = []
        self.states: list[bool] = []
        self.ended = threading.Event()
        self.failures: list[BaseException] = []
        self.replaces: Callable[[], bool] = lambda: False
        self.before_start: Callable[[], None] = lambda: None
        self.threads = WorkerThreads(
            self._build,
            before_start=lambda worker: self.before_start(),
            replaces=lambda worker, failure: self.replaces(),
            on_failure=self.failures.append,
            on_running=self.states.append,
            on_count=self.counts.append,
            on_end=self.ended.set,
        )

    def _build(self, number: int, on_running: Callable[[bool], None]) -> Worker:
        self.made.append(QuickWorker(f"worker-{number}", on_running))
        return self.made[-1]

    def add(self, count: int) -> list[str]:
        return [self.threads.add() for _ in range(count)]

    def names(self) -> list[str]:
        return [worker.name for worker in self.threads.workers]

    def called_by(self, worker: QuickWorker, call: Callable[[], str | None]) -> str | None:
        """Calls something on the thread of a worker; returns what it returned."""
        found: list[str | None] = []
        done = threading.Event()

        def called() -> None:
            found.append(call())
            done.set()

        worker.on_turn = called
        assert done.wait(20)
        return found[0]


@pytest.fixture
def bench() -> Iterator[ThreadsBench]:
    found = ThreadsBench()
    yield found
    for worker in found.made:
        worker.is_slow.clear()
    found.threads.stop(leave=False)
    wait_for(lambda: found.threads.has_ended)


def wait_for(condition: Callable[[], bool]) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + 20
    while not condition():
        assert clock.monotonic() < deadline


def test_a_new_worker_gets_the_lowest_number_that_is_free(bench: ThreadsBench) -> None:
    assert bench.add(3) == ["worker-1", "worker-2", "worker-3"]
    assert bench.threads.remove(20) == "worker-1"
    assert bench.threads.remove(20) == "worker-2"
    assert bench.add(3) == ["worker-1", "worker-2", "worker-4"]


def test_the_worker_that_has_worked_longest_is_removed_and_leaves_the_group(bench: ThreadsBench) -> None:
    bench.add(2)
    bench.threads.remove(20)
    bench.add(1)

    assert bench.made[0].left is True
    assert bench.names() == ["worker-2", "worker-1"]
    assert bench.threads.remove(20) == "worker-2"


def test_a_number_is_not_free_before_its_worker_has_ended(bench: ThreadsBench) -> None:
    bench.add(1)
    bench.made[0].is_slow.set()
    with pytest.raises(TimeoutError, match=r"^worker-1 did not end within 0.05 s; it is asked to, and ends when it"):
        bench.threads.remove(0.05)

    assert bench.add(1) == ["worker-2"]


def test_a_worker_that_was_asked_to_go_is_not_removed_again(bench: ThreadsBench) -> None:
    bench.add(2)
    bench.made[0].is_slow.set()
    with pytest.raises(TimeoutError):
        bench.threads.remove(0.01)

    assert bench.threads.remove(20) == "worker-2"
    assert bench.threads.remove(20) is None


def test_a_worker_removes_another_one_and_itself_only_when_it_is_the_last(bench: ThreadsBench) -> None:
    bench.add(2)
    first, second = bench.made

    assert bench.called_by(first, lambda: bench.threads.remove(None)) == "worker-2"
    assert second.left is True
    assert bench.called_by(first, lambda: bench.threads.remove(None)) == "worker-1"
    wait_for(lambda: bench.threads.has_ended)


def test_workers_that_remove_each_other_do_not_wait_for_each_other(bench: ThreadsBench) -> None:
    bench.add(2)
    first, second = bench.made
    found: list[str | None] = []
    second.on_turn = lambda: found.append(bench.threads.remove(None))

    def first_is_asked() -> None:
        wait_for(lambda: first.left is True)
        found.append(bench.threads.remove(None))

    first.on_turn = first_is_asked
    wait_for(lambda: bench.threads.has_ended)

    assert sorted(map(str, found)) == ["worker-1", "worker-2"]


def test_the_last_worker_that_fails_may_remove_itself_in_its_handler(bench: ThreadsBench) -> None:
    said: list[str | None] = []

    def handler() -> bool:
        said.append(bench.threads.remove(None))
        return False

    bench.replaces = handler
    bench.add(1)
    bench.made[0].failure = RuntimeError("no")
    wait_for(lambda: bench.threads.has_ended)

    assert said == ["worker-1"]


def test_a_failed_worker_hands_its_number_to_the_one_that_takes_its_place(bench: ThreadsBench) -> None:
    bench.replaces = lambda: True
    bench.add(1)
    bench.made[0].failure = RuntimeError("no")
    wait_for(lambda: len(bench.made) == 2)

    wait_for(lambda: bench.names() == ["worker-1"])
    assert not bench.ended.is_set()


def test_a_failure_that_nobody_can_be_asked_about_ends_the_worker_for_good(bench: ThreadsBench) -> None:
    said = RuntimeError("the handler failed, too")

    def handler() -> bool:
        raise said

    bench.replaces = handler
    bench.add(1)
    bench.made[0].failure = RuntimeError("no")

    assert bench.ended.wait(20)
    assert bench.failures == [said]
    assert bench.threads.has_ended


def test_a_worker_whose_place_cannot_be_taken_has_ended(bench: ThreadsBench) -> None:
    no_clients = RuntimeError("no client can be made")

    def cannot_start() -> None:
        raise no_clients

    bench.add(1)
    bench.replaces, bench.before_start = lambda: True, cannot_start
    bench.made[0].failure = RuntimeError("no")

    assert bench.ended.wait(20)
    assert bench.failures == [no_clients]
    assert bench.threads.workers == []


def test_a_worker_that_cannot_start_is_an_error_of_adding_it_and_leaves_its_number_free(bench: ThreadsBench) -> None:
    def cannot_start() -> None:
        raise RuntimeError("no client can be made")

    bench.before_start = cannot_start
    with pytest.raises(RuntimeError, match=r"^no client can be made$"):
        bench.threads.add()
    assert bench.threads.has_ended

    bench.before_start = lambda: None
    assert bench.add(1) == ["worker-1"]


def test_a_worker_that_cannot_start_does_not_hold_up_those_that_run(bench: ThreadsBench) -> None:
    def cannot_start() -> None:
        raise RuntimeError("can't start new thread")

    bench.add(1)
    bench.made[0].on_running(True)
    bench.before_start = cannot_start
    with pytest.raises(RuntimeError, match=r"^can't start new thread$"):
        bench.threads.add()

    assert bench.states == [False, True, False, True]
    assert bench.counts == [1, 2, 1]


def test_who_removes_a_worker_that_fails_and_is_replaced_does_not_wait_for_its_successor(bench: ThreadsBench) -> None:
    bench.replaces = lambda: True
    bench.add(1)
    bench.made[0].is_slow.set()
    found: list[str | None] = []
    threading.Thread(target=lambda: found.append(bench.threads.remove(None)), daemon=True).start()
    wait_for(lambda: bench.made[0].left is True)
    bench.made[0].failure = RuntimeError("no")
    bench.made[0].is_slow.clear()

    wait_for(lambda: found == ["worker-1"])
    assert bench.names() == ["worker-1"]


def test_the_number_of_those_that_stay_is_said_before_one_has_ended(bench: ThreadsBench) -> None:
    bench.add(2)
    bench.made[0].is_slow.set()
    with pytest.raises(TimeoutError):
        bench.threads.remove(0.01)

    assert bench.counts == [1, 2, 1]


def test_a_worker_that_comes_does_not_run_yet_and_one_that_goes_is_not_waited_for(bench: ThreadsBench) -> None:
    bench.add(1)
    bench.made[0].on_running(True)
    bench.add(1)
    bench.made[0].on_running(True)
    assert bench.states == [False, True, False, False]
    bench.made[1].failure = RuntimeError("no")
    wait_for(lambda: len(bench.states) == 5)

    assert bench.states[-1] is True


def test_the_end_of_the_last_worker_is_said_and_nothing_about_its_running(bench: ThreadsBench) -> None:
    bench.add(1)
    bench.made[0].on_running(True)
    bench.threads.remove(20)

    assert bench.ended.wait(20)
    assert bench.states == [False, True]
