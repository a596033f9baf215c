"""The life of a worker, in the words of Kafka Streams."""

from __future__ import annotations

import pytest

from pykstreams.runtime.worker.life import WorkerLife


def test_worker_goes_through_the_states_of_a_stream_thread() -> None:
    life = WorkerLife(lambda _: None)
    seen = [life.thread_state]
    life.begin()
    seen.append(life.thread_state)
    life.assign()
    seen.append(life.thread_state)
    life.note(runs=True)
    seen.append(life.thread_state)
    life.note(runs=False)
    seen.append(life.thread_state)
    life.stop(leave=True)
    seen.append(life.thread_state)

    assert seen == ["CREATED", "STARTING", "PARTITIONS_ASSIGNED", "RUNNING", "PARTITIONS_ASSIGNED", "PENDING_SHUTDOWN"]


def test_worker_whose_group_has_gone_on_without_it_begins_again() -> None:
    life = WorkerLife(lambda _: None)
    life.begin()
    life.assign()
    life.lose()

    assert (life.is_assigned, life.thread_state) == (False, "STARTING")


def test_only_changes_are_reported() -> None:
    reported: list[bool] = []
    life = WorkerLife(reported.append)

    changes = [life.note(runs=runs) for runs in (False, True, True, False)]

    assert changes == [False, True, False, True]
    assert reported == [True, False]
    assert not life.runs


def test_who_asks_it_to_stop_says_whether_it_leaves_the_group() -> None:
    life = WorkerLife(lambda _: None, leaves_on_failure=False)
    before = life.leaves
    life.stop(leave=True)

    assert (before, life.leaves) == (False, True)


def test_an_error_from_elsewhere_is_raised_where_it_is_asked_for() -> None:
    life = WorkerLife(lambda _: None)
    life.raise_failure()
    life.fail(ValueError("the listener failed"))

    with pytest.raises(ValueError, match="the listener failed"):
        life.raise_failure()
