"""The loop and its tasks: assigned, restored, fed, committed, handed over, lost and taken up again."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence

import pytest
from confluent_kafka import KafkaError, KafkaException

from pykstreams.core.errors import (
    ClusterError,
    ClusterUnavailableError,
    ConfigError,
    DeliveryError,
    DiskFullError,
    MissingInternalTopicsError,
    MissingSourceTopicError,
    ProcessingError,
    StoreEngineError,
    StreamsError,
    TaskCorruptedError,
    TaskMigratedError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.processors.drop_reasons import LATE_FOR_WINDOWS
from pykstreams.runtime.clients.consumers.lost_positions import LOOK_S
from pykstreams.runtime.clients.consumers.messages import Fetched
from pykstreams.runtime.clients.positions import BEGINNING
from pykstreams.runtime.key_places.key_watch import KeyWatch
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.restore.restore import Damaged
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.runtime.worker import work_summary
from pykstreams.runtime.worker.commits.commit import ExactlyOnce
from pykstreams.runtime.worker.state_updater import Corrupted, Failed, Report, Restored
from pykstreams.runtime.worker.turns import LOOK_EVERY
from tests.unit.runtime.cluster_fakes import FakeTask, FakeTransactions, Message, fetched
from tests.unit.runtime.worker.worker_bench import (
    INPUTS,
    LOG,
    ONE,
    P0,
    P1,
    TWO,
    WorkerBench,
    note_of,
    run,
)


@pytest.fixture
def bench() -> WorkerBench:
    return WorkerBench()


def test_assigned_task_is_restored_before_its_partitions_are_read(bench: WorkerBench) -> None:
    bench.updater.hold = True
    bench.assign(ONE)
    before = dict(bench.reader.assigned)
    bench.updater.pending.append(Restored(ONE, frozenset()))
    bench.worker.step()

    assert before == {}
    assert bench.reader.assigned == {P0: BEGINNING}
    assert bench.states == [True]


def test_task_goes_on_at_its_committed_offset(bench: WorkerBench) -> None:
    bench.membership.offsets[P0] = (7, "time")
    bench.assign(ONE)

    assert bench.reader.assigned == {P0: 7}
    assert bench.made[0].history == [("start", {P0: (7, "time")})]
    assert bench.updater.limits[ONE] == {P0: 7}


@pytest.fixture
def noting() -> WorkerBench:
    """A worker that takes notes, with state in each of its tasks."""
    bench = WorkerBench(notes=True)
    bench.updater.changelogs = {ONE: frozenset({LOG}), TWO: frozenset({LOG})}
    return bench


def test_nothing_is_committed_for_what_was_not_read_but_a_note_that_the_task_is_worked_on(noting: WorkerBench) -> None:
    noting.assign(ONE)

    assert noting.membership.offsets == {note_of(ONE): (0, "at work")}


def test_task_gets_no_record_before_it_is_noted_that_it_is_worked_on(noting: WorkerBench) -> None:
    noting.membership.busy = 2
    noting.assign(ONE)
    before = dict(noting.reader.assigned)
    noting.worker.step()
    noting.worker.step()

    assert before == {}
    assert noting.reader.assigned == {P0: BEGINNING}
    assert noting.membership.offsets == {note_of(ONE): (0, "at work")}


def test_task_without_state_needs_no_note() -> None:
    bench = WorkerBench(notes=True)
    bench.assign(ONE)
    bench.membership.changes.append([ONE])
    bench.worker.step()

    assert bench.membership.offsets == {}


def test_note_goes_with_the_last_commit_of_a_task_that_leaves(noting: WorkerBench) -> None:
    noting.assign(ONE, TWO)
    noting.feed(P0, 0)
    noting.membership.changes.append([ONE])
    noting.worker.step()

    assert noting.membership.offsets == {P0: (1, "m1"), note_of(ONE): (0, ""), note_of(TWO): (0, "at work")}


def test_notes_go_when_a_worker_stops_also_those_of_tasks_that_had_nothing_to_do(noting: WorkerBench) -> None:
    noting.assign(ONE, TWO)
    noting.feed(P0, 0)
    noting.worker.stop(leave=True)
    noting.worker.run()

    assert noting.membership.offsets == {P0: (1, "m1"), note_of(ONE): (0, ""), note_of(TWO): (0, "")}


def test_note_stays_where_a_task_was_lost(noting: WorkerBench) -> None:
    noting.assign(ONE)
    noting.feed(P0, 0)
    noting.membership.changes.append(Lost())
    noting.worker.step()
    noting.assign(ONE)

    assert noting.membership.offsets == {note_of(ONE): (0, "at work")}
    assert noting.interrupted == [False, True]


def test_task_whose_last_worker_ended_in_good_order_was_not_interrupted(noting: WorkerBench) -> None:
    noting.membership.offsets = {P0: (3, "m"), note_of(ONE): (0, "")}
    noting.assign(ONE)

    assert noting.interrupted == [False]


def test_task_waits_until_its_committed_offsets_are_known(bench: WorkerBench) -> None:
    bench.membership.unstable = 2
    bench.assign(ONE)
    before = list(bench.made)
    bench.worker.step()
    bench.worker.step()

    assert before == []
    assert bench.reader.assigned == {P0: BEGINNING}


def test_task_whose_committed_offset_is_in_an_open_transaction_waits_and_others_are_opened(bench: WorkerBench) -> None:
    bench.membership.unsettled = frozenset({P0})
    bench.assign(ONE, TWO)
    meanwhile = bench.worker.running_tasks
    bench.membership.unsettled = frozenset()
    bench.clock.advance(0.1)
    bench.worker.step()
    bench.worker.step()

    assert meanwhile == {TWO}
    assert bench.worker.running_tasks == {ONE, TWO}


def test_offsets_in_an_open_transaction_are_asked_for_ten_times_a_second(bench: WorkerBench) -> None:
    """Other tasks of the worker run meanwhile."""
    bench.membership.unsettled = frozenset({P0})
    bench.assign(ONE, TWO)
    for _ in range(5):
        bench.worker.step()
    at_once = list(bench.membership.asked)
    bench.clock.advance(0.1)
    bench.worker.step()

    assert at_once == [{P0, P1}]
    assert bench.membership.asked == [{P0, P1}, {P0}]


def test_task_that_waits_for_its_committed_offset_is_reported_with_a_way_out_and_ends_the_worker_at_last(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.membership.unsettled = frozenset({P0})
    bench.assign(ONE, TWO)
    began = bench.clock.monotonic()
    with pytest.raises(ClusterError, match=r"of group 'shop' have failed for 30\d s, longer than task.timeout.ms"):
        while bench.clock.monotonic() < began + 1000:
            bench.clock.advance(1)
            bench.worker.step()

    found = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert found[0] == (
        "requests for the committed offsets of group 'shop' fail (for 15 s so far): tasks 0_0 wait for those of "
        "orders-0, which are in a transaction that is still open. They go on when the brokers end it "
        "(transaction.timeout.ms of the producer that has left it). One that stays open longer is found with "
        "`kafka-transactions.sh find-hanging --topic __consumer_offsets`, and ended with `kafka-transactions.sh "
        "abort`; trying again for another 285 s at most (task.timeout.ms)"
    )
    assert len(found) == 29


def test_tasks_that_wait_for_their_committed_offsets_one_after_the_other_do_not_end_the_worker(
    bench: WorkerBench,
) -> None:
    bench.assign(ONE, TWO)
    for place in (P0, P1) * 3:
        bench.membership.unsettled = frozenset({place})
        bench.tasks.drop_all()
        for _ in range(200):
            bench.clock.advance(1)
            bench.worker.step()
    bench.tasks.drop_all()
    bench.membership.unsettled = frozenset()
    bench.clock.advance(0.1)
    bench.worker.step()
    bench.worker.step()

    assert bench.worker.running_tasks == {ONE, TWO}


def test_coordinator_that_never_tells_committed_offsets_ends_the_worker(bench: WorkerBench) -> None:
    bench.membership.unstable = 1000
    bench.assign(ONE)
    with pytest.raises(ClusterError, match=r"have failed for 30\d s.*: the coordinator of the group does not answer"):
        for _ in range(1000):
            bench.clock.advance(1)
            bench.worker.step()


def test_commit_comes_after_its_interval_and_not_before(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0, 1)
    before = dict(bench.membership.offsets)
    bench.clock.advance(1.1)
    bench.worker.step()

    assert before == {}
    assert bench.membership.offsets == {P0: (2, "m2")}


def test_commit_that_user_code_asks_for_comes_at_once(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.made[0].commit_requested = True
    bench.feed(P0, 0)

    assert bench.membership.offsets == {P0: (1, "m1")}


def test_revoked_task_is_committed_inside_the_rebalance_and_then_closed(bench: WorkerBench) -> None:
    bench.assign(ONE, TWO)
    bench.feed(P0, 0)
    bench.membership.changes += [[ONE], bench.assignment(TWO)]
    bench.worker.step()

    assert bench.membership.offsets == {P0: (1, "m1")}
    assert bench.updater.closed == [(ONE, None)]
    assert bench.reader.assigned == {P1: BEGINNING}


def test_revoked_task_is_committed_also_when_brokers_do_not_take_it_at_once(bench: WorkerBench) -> None:
    bench.assign(ONE, TWO)
    bench.feed(P0, 0)
    bench.membership.busy = 2
    bench.membership.changes += [[ONE], bench.assignment(TWO)]
    bench.worker.step()

    assert bench.membership.offsets == {P0: (1, "m1")}
    assert bench.updater.closed == [(ONE, None)]


def test_revoked_task_leaves_without_a_commit_where_brokers_take_nothing(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assign(ONE, TWO)
    bench.feed(P0, 0)
    bench.deliveries.fail = ClusterUnavailableError("1 record was not delivered within 2 s")
    bench.deliveries.when_flushed = lambda: bench.clock.advance(2)
    bench.membership.changes += [[ONE], bench.assignment(TWO)]
    bench.worker.step()

    assert bench.membership.offsets == {}
    assert "tasks that leave could not be committed: the brokers do not answer" in caplog.text


def test_revoked_task_of_a_worker_that_may_have_been_put_out_delivers_nothing_any_more(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.membership.silent = math.inf
    delivered = bench.deliveries.flushed
    bench.membership.changes.append([ONE])
    bench.worker.step()

    assert bench.deliveries.flushed == delivered
    assert bench.membership.offsets == {}
    assert bench.updater.closed == [(ONE, None)]


def test_revoked_task_is_committed_when_the_group_answers_again(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.membership.silent = 5.0
    bench.membership.looks_until_answer = 4
    bench.membership.changes.append([ONE])
    bench.worker.step()

    assert bench.membership.offsets == {P0: (1, "m1")}


def test_records_of_a_task_that_left_are_ignored(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.membership.changes += [[ONE], bench.assignment()]
    bench.worker.step()
    bench.feed(P0, 0)

    assert bench.made[0].done == {}


def test_lost_tasks_are_closed_without_a_commit_before_the_loss_is_acknowledged(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    lost = Lost()
    bench.membership.changes.append(lost)
    bench.worker.step()

    assert bench.membership.offsets == {}
    assert bench.updater.closed == [(ONE, None)]
    assert bench.membership.acknowledged[-1] == lost
    assert bench.reader.assigned == {}


def test_worker_does_not_count_as_running_from_when_its_tasks_are_lost_until_it_has_some_again(
    bench: WorkerBench,
) -> None:
    bench.assign(ONE)
    bench.membership.changes.append(Lost())
    bench.worker.step()
    bench.worker.step()
    meanwhile = list(bench.states)
    bench.assign(ONE)
    bench.worker.step()

    assert meanwhile == [True, False]
    assert bench.states == [True, False, True]


def test_worker_that_has_dropped_its_tasks_does_not_count_as_running_while_its_group_is_silent(
    bench: WorkerBench,
) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.output.holds_records = True
    bench.membership.silent = 6.1
    bench.worker.step()
    bench.output.holds_records = False
    bench.worker.step()

    assert bench.states == [True, False]


def test_worker_that_has_dropped_its_tasks_does_not_count_as_running_while_its_output_is_not_ready(
    bench: WorkerBench,
) -> None:
    bench.assign(ONE)
    bench.output.away = 2
    bench.worker.step()
    bench.worker.step()

    assert bench.states == [True, False]


def test_fenced_worker_takes_its_tasks_up_again_from_the_last_commit(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.membership.fail = TaskMigratedError("offsets were not committed")
    bench.clock.advance(1.1)
    bench.worker.step()
    bench.worker.step()
    bench.worker.step()

    assert [task.id for task in bench.made] == [ONE, ONE]
    assert bench.reader.assigned == {P0: BEGINNING}
    assert bench.deliveries.cleared == 1


def test_corrupted_task_is_taken_up_again_and_its_neighbour_stays(bench: WorkerBench) -> None:
    bench.assign(ONE, TWO)
    bench.made[0].fail = TaskCorruptedError([ONE])
    bench.worker.step()

    assert bench.updater.closed == [(ONE, None)]
    assert TWO in bench.tasks.running
    assert ["abandon" in task.history for task in bench.made] == [True, False]


@pytest.mark.parametrize("report", [Corrupted(ONE), Damaged(ONE, StoreEngineError("bad block", task_id=ONE))])
def test_task_that_closes_while_it_is_opened_is_counted_as_one_that_goes(bench: WorkerBench, report: Report) -> None:
    bench.updater.hold = True
    bench.assign(ONE)
    bench.updater.pending.append(report)
    bench.tasks.poll()
    bench.tasks.drop_all()

    assert sum(bench.changes) == 0


def test_task_that_is_swapped_is_counted_as_one_that_goes(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.tasks.hold(ONE)
    bench.tasks.close_held(ONE, None)

    assert bench.changes == [1, -1]


def test_topic_that_was_deleted_ends_the_worker(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.gone = MissingSourceTopicError("topic 'orders' does not exist")
    bench.watch.look()
    bench.worker.step()
    bench.watch.look()

    with pytest.raises(MissingSourceTopicError):
        bench.worker.step()


def test_transaction_has_begun_when_records_are_fed_for_decoding_them_may_send_dead_letters(
    bench: WorkerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.assign(ONE)
    calls: list[str] = []
    monkeypatch.setattr(bench.output.commits, "before_processing", lambda: calls.append("begin"))
    bench.reader.when_fetching = lambda: calls.append("feed")
    bench.feed(P0, 0)

    assert calls == ["begin", "feed"]


def test_transaction_has_begun_when_tasks_that_leave_settle_for_what_is_in_flight_may_be_sent(
    bench: WorkerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    calls: list[str] = []
    monkeypatch.setattr(bench.output.commits, "before_processing", lambda: calls.append("begin"))
    bench.made[0].when_settling = lambda: calls.append("settle")
    bench.worker.revoked(frozenset([ONE]))

    assert calls == ["begin", "settle"]


def of_an_unknown_topic() -> ClusterError:
    error = ClusterError("asking for the beginning offset of shop-counts-changelog-0 failed")
    error.__cause__ = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    return error


@pytest.mark.parametrize(
    ("error", "is_missing", "ends_with"),
    [
        (DeliveryError("not delivered", name="_UNKNOWN_PARTITION"), True, MissingInternalTopicsError),
        (DeliveryError("not delivered", name="_UNKNOWN_PARTITION"), False, DeliveryError),
        (of_an_unknown_topic(), True, MissingInternalTopicsError),
        (ClusterError("no rights"), True, ClusterError),
    ],
)
def test_worker_that_ends_since_a_topic_is_unknown_says_that_it_was_deleted(
    bench: WorkerBench, error: ClusterError, is_missing: bool, ends_with: type[Exception]
) -> None:
    """Writing and restoring are told of it long before the topics are looked at again."""
    if is_missing:
        bench.gone = MissingInternalTopicsError("internal topics were deleted", ["shop-counts-changelog"])

    with pytest.raises(StreamsError) as raised:
        run(bench, lambda: bench.updater.pending.append(Failed(error)))

    assert type(raised.value) is ends_with
    assert error in (raised.value, raised.value.__cause__)


def test_task_whose_state_was_deleted_is_opened_anew(bench: WorkerBench) -> None:
    bench.updater.hold = True
    bench.assign(ONE)
    bench.updater.hold = False
    bench.updater.pending.append(Corrupted(ONE))
    bench.worker.step()
    bench.worker.step()

    assert len(bench.made) == 2
    assert bench.reader.assigned == {P0: BEGINNING}


@pytest.mark.parametrize("error", [ProcessingError, ClusterUnavailableError, StoreEngineError])
def test_failure_of_the_state_updater_ends_the_worker(bench: WorkerBench, error: type[Exception]) -> None:
    bench.updater.pending.append(Failed(error("disk full")))

    with pytest.raises(error, match="disk full"):
        bench.worker.step()


def test_full_partition_is_paused_and_resumed_with_wide_hysteresis(bench: WorkerBench) -> None:
    """The marks are 20 and 2 here: ten times the setting, and the setting."""
    bench.assign(ONE)
    task = bench.made[0]
    task.hold = True
    bench.feed(P0, *range(20))
    at_the_mark = set(bench.reader.paused)
    bench.feed(P0, 20)
    above = set(bench.reader.paused)
    del task.waiting[P0][:18]
    bench.worker.step()
    still = set(bench.reader.paused)
    del task.waiting[P0][:1]
    bench.worker.step()

    assert (at_the_mark, above, still) == (set(), {P0}, {P0})
    assert bench.reader.paused == set()


def test_partition_that_lost_its_position_starts_by_policy(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.bounds[P0] = (7, 100)
    bench.reader.next = Fetched(lost_position=[P0, P1])
    bench.worker.step()

    assert bench.reader.sought == {P0: 7}


def test_refusal_that_is_reported_when_the_partition_is_read_again_takes_nobody_back(bench: WorkerBench) -> None:
    """The client reports it although its assignment is over. A second later, when the leaders are asked, records of the
    next assignment are processed, and perhaps deleted."""
    bench.membership.offsets[P0] = (50, "")
    bench.assign(ONE)
    bench.reader.next = Fetched(lost_position=[P0])
    bench.worker.step()
    bench.reader.sought.clear()
    bench.reader.next = Fetched(lost_position=[P0])
    bench.worker.step()
    bench.feed(P0, 50, 51, 52)
    bench.bounds[P0] = (53, 100)
    bench.clock.advance(2 * LOOK_S)
    bench.worker.step()

    assert bench.reader.sought == {}


def test_position_that_a_broker_refuses_while_its_leader_has_it_is_read_on(bench: WorkerBench) -> None:
    bench.membership.offsets[P0] = (50, "")
    bench.assign(ONE)
    bench.reader.next = Fetched(lost_position=[P0])
    bench.worker.step()

    assert bench.reader.sought == {P0: 50}


def test_loop_does_not_wait_for_records_while_a_task_has_some(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.made[0].waiting[P0] = [Message(0)]
    bench.worker.step()

    assert bench.reader.timeouts[-1] == 0


def test_visitors_look_in_after_each_batch_and_are_told_of_turns_without_records(bench: WorkerBench) -> None:
    class Guest:
        def look(self) -> None:
            seen.append(dict(bench.made[0].done))

        def rest(self) -> None:
            seen.append("rest")

    seen: list[dict[TopicPartition, int] | str] = []
    bench.assign(ONE)
    bench.between.add(Guest())
    bench.feed(P0, 0)
    bench.worker.step()
    bench.feed(P0, 1)

    assert seen == [{P0: 1}, "rest", {P0: 2}]


def test_task_that_reads_more_from_now_on_is_committed_and_rebuilt(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    more = TopicPartition("returns", 0)
    bench.layout = TopicLayout({"orders": 2, "returns": 1}, {**INPUTS, ONE: frozenset({P0, more})})
    bench.clock.advance(301)
    bench.worker.step()
    bench.worker.step()
    bench.worker.step()

    assert bench.membership.offsets == {P0: (1, "m1")}
    assert set(bench.reader.assigned) == {P0, more}


def test_topics_that_change_while_others_join_wait_until_tasks_can_be_committed(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    more = TopicPartition("returns", 0)
    bench.layout = TopicLayout({"orders": 2, "returns": 1}, {**INPUTS, ONE: frozenset({P0, more})})
    bench.membership.rebalances = True
    for _ in range(2):
        bench.clock.advance(301)
        bench.worker.step()
    meanwhile = set(bench.reader.assigned), dict(bench.membership.offsets)
    bench.membership.rebalances = False
    for _ in range(3):
        bench.worker.step()

    assert meanwhile == ({P0}, {})
    assert bench.membership.offsets == {P0: (1, "m1")}
    assert set(bench.reader.assigned) == {P0, more}


def test_tasks_that_read_more_from_now_on_are_rebuilt_also_where_they_could_not_be_committed(
    bench: WorkerBench,
) -> None:
    bench.updater.hold = True
    bench.assign(ONE, TWO)
    more = TopicPartition("returns", 0)
    bench.layout = TopicLayout({"orders": 2, "returns": 1}, {**INPUTS, ONE: frozenset({P0, more})})
    bench.membership.fail = TaskMigratedError("not in the group")
    bench.clock.advance(301)
    bench.worker.step()
    bench.updater.hold = False
    bench.worker.step()
    bench.worker.step()

    assert {task.id: set(task.inputs) for task in bench.made[-2:]} == {ONE: {P0, more}, TWO: {P1}}


@pytest.mark.parametrize(
    "failure",
    [
        TaskMigratedError("not in the group"),
        TaskCorruptedError({ONE}),
        ClusterUnavailableError("away"),
        DiskFullError("full", folder="/state/shop/0_0/rocksdb/rows", task_id=ONE),
    ],
)
def test_assignment_that_comes_with_other_inputs_holds_also_where_their_tasks_could_not_be_committed(
    bench: WorkerBench, failure: Exception
) -> None:
    bench.assign(ONE, TWO)
    bench.feed(P0, 0)
    third, more = TaskId(0, 2), [TopicPartition("returns", number) for number in range(3)]
    orders = [TopicPartition("orders", number) for number in range(3)]
    tasks = {TaskId(0, number): frozenset({orders[number], more[number]}) for number in range(3)}
    bench.layout = TopicLayout({"orders": 3, "returns": 3}, tasks)
    bench.membership.fail = failure
    change = bench.assignment(ONE, third)
    bench.membership.changes.append([TWO])
    bench.membership.changes.append(change)
    for _ in range(3):
        bench.worker.step()
        bench.clock.advance(1)

    assert bench.tasks.running.keys() == {ONE, third}
    assert bench.membership.acknowledged[-1] is change


def test_task_whose_topics_are_gone_is_let_go_and_taken_up_when_it_is_assigned_again(bench: WorkerBench) -> None:
    bench.assign(ONE, TWO)
    both = bench.layout
    bench.layout = TopicLayout({"orders": 1}, {ONE: INPUTS[ONE]})
    bench.clock.advance(301)
    bench.worker.step()
    bench.worker.step()
    assert bench.tasks.running.keys() == {ONE}
    bench.layout = both
    bench.clock.advance(301)
    bench.worker.step()
    bench.assign(ONE, TWO)

    assert bench.tasks.running.keys() == {ONE, TWO}


class _NotedKeys(KeyWatch):
    """Notes what it is shown."""

    def __init__(self) -> None:
        self.looked: list[tuple[tuple[str, int], int]] = []
        self.followed: list[Mapping[str, int]] = []

    def look(self, place: tuple[str, int], messages: Sequence[object]) -> None:
        self.looked.append((place, len(messages)))

    def follow(self, partitions: Mapping[str, int]) -> None:
        self.followed.append(partitions)


def test_keys_are_looked_at_as_records_come_and_topics_followed_as_they_change() -> None:
    watch = _NotedKeys()
    bench = WorkerBench(key_watch=watch)
    bench.assign(ONE)
    bench.feed(P0, 0, 1, 2)
    bench.layout = TopicLayout({"orders": 3}, dict(INPUTS))
    bench.clock.advance(301)
    bench.worker.step()

    assert watch.looked == [(P0, 3)]
    assert watch.followed == [{"orders": 3}]


def test_task_that_is_restored_while_the_worker_is_put_out_of_the_group_is_there_once(bench: WorkerBench) -> None:
    bench.before_start_failure = TaskMigratedError("not in the group")
    bench.assign(ONE)
    assert [task.id for task in bench.tasks.tasks()] == [ONE]
    bench.before_start_failure = None
    bench.worker.step()

    assert bench.tasks.running.keys() == {ONE}
    assert len(bench.made) == 1 + len(bench.updater.closed)


def test_worker_in_one_turn_for_longer_than_a_member_may_take_is_stuck_until_the_next_one(
    bench: WorkerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[float | None] = []
    poll = bench.membership.poll

    def takes_long(timeout: float = 0) -> Assignment | Lost | None:
        for seconds in (299, 2):
            bench.clock.advance(seconds)
            found.append(bench.worker.stuck_s())
        return poll(timeout)

    assert bench.worker.stuck_s() is None
    monkeypatch.setattr(bench.membership, "poll", takes_long)
    bench.worker.step()
    monkeypatch.setattr(bench.membership, "poll", poll)
    bench.worker.step()

    assert found == [None, 301]
    assert bench.worker.stuck_s() is None


def test_seconds_since_the_last_poll_tell_of_a_worker_that_hangs(
    bench: WorkerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[float] = []
    poll = bench.membership.poll

    def note(seconds: float) -> None:
        bench.clock.advance(seconds)
        metrics = bench.worker._parts.metrics.metrics()
        found.extend(metric.value for name, metric in metrics.items() if name.name == "last-poll-seconds-ago")

    def hangs(timeout: float = 0) -> Assignment | Lost | None:
        for seconds in (1, 300):
            note(seconds)
        bench.worker.stop(leave=True)
        return poll(timeout)

    monkeypatch.setattr(bench.membership, "start", lambda *_: note(5))
    monkeypatch.setattr(bench.membership, "poll", hangs)
    bench.worker.run()
    note(1)

    assert found == [-1, 1, 301]  # before the first poll, as KafkaConsumerMetrics says (4.3.1), and none afterwards


def test_worker_that_hangs_while_it_closes_is_busy_until_it_has(
    bench: WorkerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions of the user, such as ``close`` of a processor, run on the thread that it waits for."""
    found: list[float] = []

    def hangs() -> None:
        bench.clock.advance(70)
        found.append(bench.worker.busy_s())

    monkeypatch.setattr(bench.updater, "stop", hangs)
    run(bench, lambda: bench.worker.stop(leave=True))

    assert (found, bench.worker.busy_s()) == ([70], 0)


def test_a_task_is_given_to_a_reader_while_it_runs_or_is_held_and_not_while_it_is_restored(bench: WorkerBench) -> None:
    bench.updater.hold = True
    bench.assign(ONE)
    restoring = bench.worker.running_task(ONE)
    bench.updater.pending.append(Restored(ONE, frozenset()))
    bench.worker.step()
    running = bench.worker.running_task(ONE)
    bench.tasks.hold(ONE)

    assert restoring is None
    assert running is bench.made[0] is bench.worker.running_task(ONE)
    assert bench.worker.running_task(TWO) is None


@pytest.mark.parametrize("leave", [True, False])
def test_stopped_worker_commits_closes_and_leaves_as_it_was_told(bench: WorkerBench, leave: bool) -> None:
    def stop() -> None:
        bench.reader.next = fetched(P0, 0)
        bench.membership.busy = 1
        bench.worker.stop(leave=leave)

    run(bench, stop)

    assert bench.membership.offsets == {P0: (1, "m1")}
    assert bench.updater.closed == [(ONE, None)]
    assert (bench.updater.stopped, bench.output.closed, bench.reader.closed) == (True, True, True)
    assert bench.membership.left is leave


def test_failing_worker_commits_nothing_and_closes_everything(bench: WorkerBench) -> None:
    def break_it() -> None:
        bench.reader.next = fetched(P0, 0)
        bench.made[0].fail = ProcessingError("map failed at record orders-0 offset 0")

    with pytest.raises(ProcessingError, match="orders-0 offset 0"):
        run(bench, break_it)

    assert bench.membership.offsets == {}
    assert (bench.updater.stopped, bench.reader.closed) == (True, True)


@pytest.mark.parametrize("leaves", [True, False])
def test_failing_worker_leaves_the_group_unless_it_keeps_its_place(leaves: bool) -> None:
    bench = WorkerBench(leaves_on_failure=leaves, start_failure=ConfigError("no serde was given"))

    with pytest.raises(ConfigError):
        run(bench, lambda: None)

    assert bench.membership.left is leaves


def test_task_that_cannot_start_ends_the_worker_with_its_own_error(bench: WorkerBench) -> None:
    bench.start_failure = ConfigError("no serde was given")

    with pytest.raises(ConfigError, match="no serde was given"):
        run(bench, lambda: None)

    assert bench.updater.closed == [(ONE, None)]
    assert (bench.updater.stopped, bench.reader.closed) == (True, True)


def test_worker_that_cannot_join_closes_everything(bench: WorkerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ConfigError("no such group")

    monkeypatch.setattr(bench.membership, "start", refuse)
    with pytest.raises(ConfigError):
        bench.worker.run()

    assert (bench.updater.stopped, bench.output.closed, bench.reader.closed) == (True, True, True)


def test_worker_that_closes_goes_on_closing_after_an_error(
    bench: WorkerBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(partitions: Collection[TopicPartition]) -> None:
        if partitions:
            raise ClusterError("giving up partitions failed")

    monkeypatch.setattr(bench.reader, "unassign", refuse)
    run(bench, lambda: bench.worker.stop(leave=True))

    assert "giving up partitions failed" in caplog.text
    assert "worker: closing tasks went wrong; the worker closes the rest" in caplog.messages
    assert (bench.updater.stopped, bench.output.closed, bench.reader.closed) == (True, True, True)


def test_worker_without_tasks_has_no_last_commit_to_wait_for(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.membership.rebalances = True
    began = bench.clock.monotonic()
    bench.worker.stop(leave=True)
    bench.worker.run()

    assert bench.clock.monotonic() == began
    assert "the last commit did not succeed" not in caplog.text


def test_worker_that_loses_its_tasks_before_the_last_commit_does_not_wait_for_it(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    def stop() -> None:
        bench.membership.rebalances = True
        bench.membership.changes.append(Lost())
        bench.worker.stop(leave=True)

    run(bench, stop)

    assert "the last commit did not succeed" in caplog.text
    assert "gone on without this worker" in caplog.text


def test_last_commit_that_is_fenced_is_said_and_does_not_fail(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    def stop() -> None:
        bench.reader.next = fetched(P0, 0)
        bench.membership.fail = TaskMigratedError("not in the group")
        bench.worker.stop(leave=True)

    with caplog.at_level(logging.WARNING):
        run(bench, stop)

    assert "the last commit did not succeed, so some records will be processed again: not in the group" in caplog.text


def test_worker_that_has_not_heard_from_its_group_processes_and_commits_nothing_until_it_has(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.clock.advance(4)
    bench.made[0].add(P0, [Message(1)])
    bench.membership.silent = 5.0
    bench.worker.step()
    before = dict(bench.made[0].done), dict(bench.membership.offsets)
    bench.membership.silent = 0.2
    bench.worker.step()

    assert before == ({P0: 1}, {})
    assert bench.made[0].done == {P0: 2}
    assert bench.membership.offsets == {P0: (2, "m2")}
    assert "heartbeats of worker fail: the group does not answer" in caplog.text
    assert "heartbeats of worker succeed again, after 0.0 s" in caplog.text


def test_work_that_waits_for_the_group_for_the_task_timeout_ends_the_worker(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.membership.silent = 5.0
    for _ in range(7):
        bench.worker.step()
        bench.clock.advance(43)

    with pytest.raises(ClusterError, match=r"heartbeats of worker have failed for 301 s.*task\.timeout\.ms"):
        bench.worker.step()


def test_worker_with_nothing_to_commit_waits_for_its_group_for_as_long_as_it_takes(bench: WorkerBench) -> None:
    bench.assign(ONE)
    for _ in range(3):
        bench.membership.silent = 301.0
        bench.clock.advance(301)
        bench.worker.step()

    assert bench.updater.closed == []


def test_heartbeats_that_are_far_apart_put_no_worker_in_doubt(bench: WorkerBench) -> None:
    bench.membership.times = SessionTimes(5, 6)
    bench.assign(ONE)
    bench.membership.silent = 5.2
    bench.feed(P0, 0)

    assert bench.made[0].done == {P0: 1}


def test_worker_that_was_put_out_of_the_group_while_it_was_stopped_processes_nothing(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.made[0].add(P0, [Message(0)])
    bench.clock.advance(7)
    bench.membership.silent = 7.0
    bench.worker.step()
    bench.membership.changes.append(Lost())
    bench.worker.step()

    assert bench.made[0].done == {}
    assert bench.updater.closed == [(ONE, None)]
    assert bench.membership.offsets == {}


def test_worker_that_is_stopped_in_the_middle_of_its_records_waits_for_the_group_before_the_next_ones(
    bench: WorkerBench,
) -> None:
    bench.assign(ONE)
    task = bench.made[0]

    def stopped() -> None:
        bench.clock.advance(7)
        bench.membership.silent = 7.0

    task.when_processing = stopped
    bench.feed(P0, *range(3 * LOOK_EVERY))
    task.when_processing = lambda: None
    bench.worker.step()

    assert task.done == {P0: LOOK_EVERY}
    assert bench.membership.offsets == {}


def test_worker_that_was_stopped_while_it_joined_goes_on_only_after_the_join(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.made[0].add(P0, [Message(0)])
    bench.membership.silent = None
    bench.clock.advance(7)
    bench.worker.step()
    before = dict(bench.made[0].done)
    bench.clock.advance(1)
    bench.membership.silent = 0.5
    bench.worker.step()

    assert (before, bench.made[0].done) == ({}, {P0: 1})


def test_worker_processes_on_while_it_waits_for_others_to_join(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.membership.silent = None
    for offset in range(20):
        bench.feed(P0, offset)
        bench.clock.advance(0.5)

    assert bench.made[0].done == {P0: 20}


def test_worker_whose_commit_is_due_waits_for_records_while_others_join(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.membership.rebalances = True
    bench.clock.advance(60)
    bench.worker.step()
    waited, committed = bench.reader.timeouts[-1], dict(bench.membership.offsets)
    bench.membership.rebalances = False
    bench.worker.step()

    assert (waited, committed) == (0.1, {})
    assert bench.membership.offsets == {P0: (1, "m1")}


def test_records_that_could_not_be_delivered_before_the_session_ended_are_dropped(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.output.holds_records = True
    bench.membership.silent = 5.0
    bench.worker.step()
    before = bench.output.renewed
    bench.membership.silent = 6.1
    bench.worker.step()

    assert (before, bench.output.renewed) == (0, 1)
    assert bench.updater.closed == [(ONE, None)]
    assert "what it could not deliver is dropped" in caplog.text


def test_worker_whose_records_the_brokers_do_not_take_as_fast_processes_nothing_until_they_have(
    bench: WorkerBench,
) -> None:
    bench.assign(ONE)
    bench.output.is_behind = True
    bench.reader.next = fetched(P0, 0)
    bench.worker.step()
    before = dict(bench.made[0].done)
    bench.output.is_behind = False
    bench.worker.step()

    assert before == {}
    assert bench.made[0].done == {P0: 1}


def test_worker_whose_session_is_over_sends_nothing_that_waits_for_other_records(bench: WorkerBench) -> None:
    """The output does so while it is polled, and others have the tasks by now."""
    bench.assign(ONE)
    bench.membership.silent = 5.0
    before = bench.output.polled
    bench.worker.step()
    in_doubt = bench.output.polled
    bench.membership.silent = 7.0
    bench.worker.step()

    assert (in_doubt - before, bench.output.polled - in_doubt) == (1, 0)


def test_worker_whose_records_were_all_delivered_keeps_its_tasks_when_the_session_ends(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.membership.silent = 60.0
    bench.worker.step()

    assert bench.output.renewed == 0
    assert bench.updater.closed == []


def test_transaction_is_kept_when_the_session_ends_since_brokers_fence_it() -> None:
    bench = WorkerBench(settings={"processing.guarantee": "exactly_once_v2"})
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.output.holds_records = True
    bench.membership.silent = 60.0
    bench.worker.step()

    assert bench.output.renewed == 0
    assert bench.updater.closed == []


def test_worker_that_hears_from_its_group_is_never_in_doubt(bench: WorkerBench) -> None:
    bench.assign(ONE)
    for offset in range(20):
        bench.membership.silent = (offset % 3) + 0.5
        bench.feed(P0, offset)
        bench.clock.advance(0.5)

    assert bench.membership.offsets[P0][0] > 15


def test_last_commit_is_not_made_by_a_worker_that_has_not_heard_from_its_group(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    def stop() -> None:
        bench.reader.next = fetched(P0, 0)
        bench.output.holds_records = True
        bench.membership.silent = 60.0
        bench.membership.when_polled = lambda: bench.clock.advance(1)
        bench.worker.stop(leave=True)

    with caplog.at_level(logging.INFO):
        run(bench, stop)

    assert bench.membership.offsets == {}
    assert bench.output.renewed == 1
    assert sum("stops; its last commit waits for the brokers, 10 s at most" in one for one in caplog.messages) == 1
    assert "the last commit did not succeed" in caplog.text


def test_cluster_that_does_not_answer_sends_tasks_back_to_their_last_commit_and_ends_nothing(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assign(ONE)
    bench.made[0].fail = ClusterUnavailableError("asking for the topics failed")
    bench.feed(P0, 0)
    bench.worker.step()
    bench.worker.step()

    assert bench.updater.closed == [(ONE, None)]
    assert len(bench.made) == 2
    assert P0 in bench.reader.assigned
    assert "requests of worker fail: asking for the topics failed" in caplog.text


def test_cluster_that_does_not_answer_for_the_task_timeout_ends_the_worker(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.output.away = 1000
    for _ in range(7):
        bench.worker.step()
        bench.clock.advance(43)

    with pytest.raises(ClusterError, match=r"requests of worker have failed for 301 s.*task\.timeout\.ms"):
        bench.worker.step()


class HangingStart(FakeTransactions):
    """A producer whose start hangs, so often as it is told; ``hangs`` counts for all of its kind."""

    def __init__(self, hangs: list[int]) -> None:
        super().__init__()
        self._hangs = hangs

    def start_transactions(self, timeout_s: float) -> None:
        self._fail_once_broken()
        if self._hangs[0]:
            self._hangs[0] -= 1
            self.broken = True
            raise ClusterUnavailableError("starting transactions failed: no answer within 7 s")
        super().start_transactions(timeout_s)


def exactly_once_with(hangs: int) -> WorkerBench:
    """A worker whose producers hang so often when they start."""
    bench = WorkerBench(settings={"processing.guarantee": "exactly_once_v2"})
    left = [hangs]

    def commits() -> ExactlyOnce:
        return ExactlyOnce(bench.steps, HangingStart(left), bench.clock, 10_000)

    bench.output.commits, bench.output.make_commits = commits(), commits
    return bench


def test_producer_whose_start_hangs_is_made_anew(caplog: pytest.LogCaptureFixture) -> None:
    bench = exactly_once_with(hangs=2)
    bench.assign(ONE)
    for _ in range(3):
        bench.worker.step()

    assert bench.output.renewed == 2
    assert bench.worker.running_tasks == {ONE}
    assert "requests of worker fail: starting transactions failed: no answer within 7 s; trying again" in caplog.text


def test_producers_whose_start_hangs_for_the_task_timeout_end_the_worker() -> None:
    bench = exactly_once_with(hangs=1000)
    bench.assign(ONE)
    with pytest.raises(ClusterError, match=r"requests of worker have failed for 30\d s.*starting transactions failed"):
        for _ in range(100):
            bench.clock.advance(7)
            bench.worker.step()


def test_tasks_are_opened_when_the_output_is_ready_and_not_before(bench: WorkerBench) -> None:
    bench.output.away = 3
    bench.assign(ONE)
    before = len(bench.made)
    for _ in range(3):
        bench.worker.step()

    assert before == 0
    assert P0 in bench.reader.assigned


def test_producer_that_is_made_anew_leaves_no_task_that_would_send_through_the_old_one(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.updater.hold = True
    bench.membership.changes.append(bench.assignment(ONE, TWO))
    bench.worker.step()
    bench.deliveries.broken = True
    bench.made[0].fail = TaskMigratedError("the producer cannot go on")
    bench.feed(P0, 0)

    assert bench.output.renewed == 1
    assert {task_id for task_id, _ in bench.updater.closed} == {ONE, TWO}


def test_end_of_a_partition_is_told_to_its_task(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.reader.next = Fetched(ends={P0: 9, P1: 4})
    bench.worker.step()

    assert ("end", P0, 9) in bench.made[0].history


def test_input_that_cannot_be_read_for_a_while_is_logged_once_per_interval(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assign(ONE)
    for _ in range(5):
        bench.reader.next = Fetched(held_up={"orders-0": "no leader (LEADER_NOT_AVAILABLE)"})
        bench.worker.step()

    assert [line for line in caplog.messages if "held up" in line] == [
        "reading orders-0 is held up: no leader (LEADER_NOT_AVAILABLE); the client tries again by itself"
    ]


def test_worker_that_lost_its_tasks_sends_nothing_of_theirs_any_more(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.output.holds_records = True
    bench.membership.changes.append(Lost())
    bench.worker.step()

    assert bench.output.renewed == 1
    assert bench.updater.closed == [(ONE, None)]


def test_records_of_tasks_that_leave_without_a_commit_are_not_sent_any_more(bench: WorkerBench) -> None:
    bench.assign(ONE, TWO)
    bench.feed(P0, 0)
    bench.output.holds_records = True
    bench.deliveries.fail = ClusterUnavailableError("1 records were not delivered within 5 s")
    bench.deliveries.when_flushed = lambda: bench.clock.advance(5)
    bench.membership.changes.append({ONE})
    bench.worker.step()

    assert bench.output.renewed == 1
    assert {task_id for task_id, _ in bench.updater.closed} == {ONE, TWO}
    assert bench.membership.offsets.get(P0) is None


def test_task_that_fails_alone_leaves_what_others_have_sent(bench: WorkerBench) -> None:
    bench.assign(ONE, TWO)
    bench.output.holds_records = True
    bench.made[0].fail = TaskCorruptedError([ONE])
    bench.feed(P0, 0)

    assert bench.output.renewed == 0
    assert bench.updater.closed == [(ONE, None)]


@pytest.mark.parametrize(("guarantee", "added"), [("exactly_once_v2", False), ("at_least_once", True)])
def test_nothing_is_added_to_a_transaction_whose_records_are_not_delivered(guarantee: str, added: bool) -> None:
    bench = WorkerBench(settings={"processing.guarantee": guarantee})
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.deliveries.fail = ClusterUnavailableError("1 records were not delivered within 5 s")
    bench.clock.advance(2)
    bench.worker.step()
    bench.feed(P0, 1)
    meanwhile = bench.made[0].done[P0]
    bench.deliveries.fail = None
    bench.worker.step()
    bench.worker.step()

    assert meanwhile == (2 if added else 1)
    assert bench.made[0].done == {P0: 2}


def test_smaller_cache_is_emptied_entry_by_entry_from_all_tasks_in_turn(bench: WorkerBench) -> None:
    taken: list[TaskId] = []

    def evicts(task: TaskId) -> bool:
        taken.append(task)
        bench.cache.size_bytes -= 300
        return True

    bench.assign(ONE, TWO)
    for task in bench.made:
        task.evictions = [lambda task=task: evicts(task.id)] * 3  # type: ignore[misc]  # bound early
    bench.cache.size_bytes = 1000
    bench.worker.step()
    assert taken == []
    bench.cache.max_bytes = 400
    bench.worker.step()

    assert taken == [ONE, TWO]


def test_cache_that_has_nothing_left_to_evict_does_not_hold_up_the_worker(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.cache.size_bytes = 2000
    bench.feed(P0, 0)

    assert bench.made[0].done == {P0: 1}


def test_paused_worker_reads_as_far_as_there_is_room_commits_and_neither_processes_nor_punctuates(
    bench: WorkerBench,
) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.pause.is_set = True
    calls = bench.made[0].punctuated
    bench.feed(P0, *range(1, 30))
    bench.clock.advance(1.1)
    bench.worker.step()

    assert bench.made[0].done == {P0: 1}
    assert bench.made[0].punctuated == calls
    assert bench.reader.paused == {P0}
    assert bench.membership.offsets == {P0: (1, "m1")}


def test_records_that_come_while_the_worker_waits_for_them_and_is_paused_are_not_processed(bench: WorkerBench) -> None:
    def pause() -> None:
        bench.pause.is_set = True

    bench.assign(ONE)
    bench.reader.when_fetching = pause
    bench.feed(P0, 0)

    assert bench.made[0].done == {}


def test_paused_worker_waits_for_records_though_there_are_some_to_process(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.pause.is_set = True
    bench.feed(P0, 0)
    bench.worker.step()

    assert bench.reader.timeouts[-1] > 0


def test_resumed_worker_goes_on_where_it_was(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.pause.is_set = True
    bench.feed(P0, 0, 1)
    bench.pause.is_set = False
    bench.worker.step()

    assert bench.made[0].done == {P0: 2}


def test_paused_worker_takes_and_gives_tasks_up_as_the_group_says(bench: WorkerBench) -> None:
    bench.pause.is_set = True
    bench.assign(ONE, TWO)
    bench.feed(P0, 0)
    bench.membership.changes += [[ONE], bench.assignment(TWO)]
    bench.worker.step()

    assert set(bench.reader.assigned) == {P1}
    assert bench.made[0].done == {}


def test_paused_worker_counts_as_running_while_its_tasks_are_not_restored(bench: WorkerBench) -> None:
    bench.updater.hold = True
    bench.pause.is_set = True
    bench.worker.step()
    assert bench.states == []
    bench.assign(ONE)
    assert bench.states == [True]
    bench.pause.is_set = False
    bench.worker.step()

    assert bench.states == [True, False]


def test_records_in_flight_are_committed_while_the_worker_is_paused(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.made[0].unfinished = 1
    bench.pause.is_set = True
    bench.clock.advance(1.1)
    bench.worker.step()
    assert bench.membership.offsets == {}
    bench.made[0].unfinished = 0
    bench.clock.advance(1.1)
    bench.worker.step()

    assert bench.membership.offsets == {P0: (1, "m1")}


def test_metadata_of_a_worker_follows_its_life(bench: WorkerBench) -> None:
    assert (bench.worker.thread_state, bench.worker.active_tasks()) == ("CREATED", frozenset())
    bench.updater.hold = True
    bench.assign(ONE)
    assert bench.worker.thread_state == "PARTITIONS_ASSIGNED"
    (task,) = bench.worker.active_tasks()
    assert (task.task_id, task.topic_partitions) == (ONE, frozenset({P0}))
    assert (task.committed_offsets, task.end_offsets, task.time_current_idling_started) == ({P0: -1}, {P0: -1}, None)
    bench.updater.pending.append(Restored(ONE, frozenset()))
    bench.worker.step()
    assert bench.worker.thread_state == "RUNNING"
    bench.worker.stop(leave=True)

    assert bench.worker.thread_state == "PENDING_SHUTDOWN"


def test_metadata_of_a_task_has_its_offsets_and_since_when_it_is_idle(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.reader.ends[P0], bench.reader.starts[P0] = 9, 4
    idle_since = bench.clock.now_ms()
    bench.clock.advance(0.5)
    (idle,) = bench.worker.active_tasks()
    bench.feed(P0, 0)
    (busy,) = bench.worker.active_tasks()
    bench.clock.advance(1.1)
    bench.worker.step()
    (done,) = bench.worker.active_tasks()

    assert (idle.committed_offsets, idle.end_offsets, idle.time_current_idling_started) == (
        {P0: -1},
        {P0: 9},
        idle_since,
    )
    assert idle.start_offsets == {P0: 4}
    assert busy.time_current_idling_started is None
    assert (done.committed_offsets, done.time_current_idling_started) == ({P0: 1}, bench.clock.now_ms())
    assert idle == done


def test_worker_ends_with_an_error_that_has_happened_elsewhere(bench: WorkerBench) -> None:
    with pytest.raises(StreamsError, match="the listener failed"):
        run(bench, lambda: bench.worker.fail(StreamsError("the listener failed")))

    assert (bench.updater.stopped, bench.membership.left) == (True, True)


def test_worker_sums_up_its_work_in_every_interval(caplog: pytest.LogCaptureFixture) -> None:
    bench = WorkerBench({"log.summary.interval.ms": 1000, "commit.interval.ms": 0})
    bench.assign(ONE, TWO)
    bench.feed(P0, 0, 1, 2)
    bench.feed(P1, 0)
    bench.clock.advance(1.5)
    with caplog.at_level(logging.INFO, work_summary.__name__):
        bench.worker.step()
        bench.worker.step()
        bench.clock.advance(1.5)
        bench.worker.step()

    assert caplog.messages == [
        "worker: processed 4 records (2.7/s), ran 0 punctuators, and committed 2 tasks in the last 2 s; "
        "0 records behind; dropped 0 (0 late); restored 0",
        "worker: processed 0 records (0.0/s), ran 0 punctuators, and committed 0 tasks in the last 2 s; "
        "0 records behind; dropped 0 (0 late); restored 0",
    ]


def test_worker_says_in_every_interval_how_far_behind_it_is_and_what_was_dropped_and_restored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = WorkerBench({"log.summary.interval.ms": 1000})
    bench.assign(ONE, TWO)
    bench.worker.step()
    one, two = (bench.worker._tasks.running[task].task for task in (ONE, TWO))
    assert isinstance(one, FakeTask)
    assert isinstance(two, FakeTask)
    one.unread, two.unread = 7, 5
    for _ in range(3):
        one.dropped.drop("AGGREGATE", LATE_FOR_WINDOWS)
    two.dropped.drop("AGGREGATE", "its key is null")
    bench.updater.restored = 40
    with caplog.at_level(logging.INFO, work_summary.__name__):
        bench.clock.advance(1.5)
        bench.worker.step()
        one.unread = two.unread = 0
        one.dropped.drop("AGGREGATE", LATE_FOR_WINDOWS)
        bench.updater.restored = 41
        bench.clock.advance(1.5)
        bench.worker.step()

    assert [line.partition("; ")[2] for line in caplog.messages if "processed" in line] == [
        "12 records behind; dropped 4 (3 late); restored 40",
        "0 records behind; dropped 1 (1 late); restored 1",
    ]


@pytest.mark.parametrize("interval", [0, -1])
def test_worker_whose_interval_is_not_positive_sums_up_nothing(interval: int, caplog: pytest.LogCaptureFixture) -> None:
    bench = WorkerBench({"log.summary.interval.ms": interval})
    bench.assign(ONE)
    bench.clock.advance(1000)
    with caplog.at_level(logging.INFO, work_summary.__name__):
        bench.worker.step()

    assert caplog.messages == []
