"""The life of a worker, in the words of Kafka Streams."""

from __future__ import annotations

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


def test_only_changes_are_reported() -> None:
    reported: list[bool] = []
    life = WorkerLife(reported.append)

    changes = [life.note(runs=runs) for runs in (False, True, True, False)]

    assert changes == [False, True, False, True]
    assert reported == [True, False]
    assert not life.runs
