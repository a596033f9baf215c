"""When punctuators fire (FORMAT.md, section 11, rule 7)."""

from collections.abc import Callable

from pykstreams.runtime.tasks.punctuation import NEVER, PunctuationQueue, Schedule


class Recorder:
    def __init__(self) -> None:
        self.fired: list[tuple[str, int]] = []
        self.queue = PunctuationQueue(lambda node, callback, now: callback(now))

    def schedule(self, name: str, due: int, interval: int, then: Callable[[], object] = lambda: None) -> Schedule:
        def callback(now: int) -> None:
            self.fired.append((name, now))
            then()

        made = Schedule("NODE", due, interval, callback)
        self.queue.schedule(made)
        return made


def test_a_punctuator_fires_with_the_time_and_not_with_its_due_time() -> None:
    recorder = Recorder()
    recorder.schedule("a", 10, 10)

    assert not recorder.queue.fire(9)
    assert recorder.queue.fire(17)
    assert recorder.fired == [("a", 17)]
    assert recorder.queue.next_due == [20]


def test_what_was_missed_is_not_made_up_for() -> None:
    recorder = Recorder()
    recorder.schedule("a", 0, 10)

    recorder.queue.fire(35)

    assert recorder.fired == [("a", 35)]
    assert recorder.queue.next_due == [40]


def test_the_next_due_time_lies_after_the_one_just_reached() -> None:
    recorder = Recorder()
    recorder.schedule("a", 0, 10)

    recorder.queue.fire(20)

    assert recorder.queue.next_due == [30]


def test_schedules_fire_in_the_order_of_their_due_times() -> None:
    recorder = Recorder()
    recorder.schedule("late", 30, 100)
    recorder.schedule("early", 10, 100)
    recorder.schedule("middle", 20, 100)

    recorder.queue.fire(50)

    assert [name for name, _ in recorder.fired] == ["early", "middle", "late"]


def test_a_cancelled_schedule_does_not_fire() -> None:
    recorder = Recorder()
    recorder.schedule("a", 10, 10).cancel()

    assert not recorder.queue.fire(100)
    assert recorder.queue.next_due == [NEVER]


def test_a_punctuator_may_cancel_itself() -> None:
    recorder = Recorder()
    made = recorder.schedule("a", 10, 10, lambda: made.cancel())

    recorder.queue.fire(10)
    recorder.queue.fire(20)

    assert recorder.fired == [("a", 10)]


def test_a_punctuator_may_add_a_schedule_that_is_due_at_once() -> None:
    recorder = Recorder()
    recorder.schedule("a", 10, 100, lambda: recorder.schedule("b", 5, 100))

    recorder.queue.fire(10)

    assert recorder.fired == [("a", 10), ("b", 10)]
