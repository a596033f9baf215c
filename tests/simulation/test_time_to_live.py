"""Rows with a time to live go, everywhere and for good, although workers die, and no row goes that should be there."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from pykstreams import Grouped, KStream, KTable, Materialized, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.processor import CurrentRecord
from pykstreams.state.buffers.expiry_index import Entry, ExpiryIndex
from pykstreams.topology.plan import SubtopologyPlan, TopologyPlan
from tests.simulation.cluster import Sent, simulated
from tests.simulation.crashes import CrashingCluster, MortalRunner
from tests.simulation.schedules import schedules

TIME_TO_LIVE = 50
END = 1_000
PARTITIONS = 2
KEYS = "abcdefgh"
TEXT = Serdes.string()


class TickingCluster(CrashingCluster):
    """A cluster whose wall clock goes on by a millisecond with each step."""

    def _runner(self, task_id: TaskId, part: SubtopologyPlan, read: Sequence[TopicPartition]) -> MortalRunner:
        return PunctuatedRunner(self, task_id, part, read)

    def settle(self) -> None:
        """Lets all go that is due."""
        for _ in range(8):
            for runner in self.runners:
                assert isinstance(runner, PunctuatedRunner)
                runner.punctuate_and_commit()


class PunctuatedRunner(MortalRunner):
    """A worker that runs punctuators by the wall clock; under exactly-once what it has not committed is never seen."""

    def __init__(
        self, cluster: CrashingCluster, task_id: TaskId, part: SubtopologyPlan, read: Sequence[TopicPartition]
    ) -> None:
        super().__init__(cluster, task_id, part, read)
        self._aborts = cluster.config.exactly_once

        if self._aborts:
            self._outbox.send_something = lambda: None  # type: ignore[method-assign]

    def follow(self, other: MortalRunner) -> None:
        """Begins anew where another worker has ended."""
        self._committed = dict(other._committed)
        self._go_on_elsewhere(interrupted=False)

    def go_on(self) -> None:
        self._tick()
        super().go_on()

    def punctuate_and_commit(self) -> None:
        self._tick()
        self._commit()

    def _tick(self) -> None:
        clock = self._cluster.clock
        clock.advance(1)
        self.task.punctuate(clock.now_ms())

    def _die(self) -> None:
        if self._aborts:
            self._outbox.forget()
        super()._die()


def of_records(builder: StreamsBuilder, kept: Materialized[str, str]) -> KTable[str, str]:
    return builder.table("in", materialized=kept)


def aggregated(builder: StreamsBuilder, kept: Materialized[str, str]) -> KTable[str, str]:
    records: KStream[str, str] = builder.stream("in")
    return records.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).reduce(lambda _, new: new, materialized=kept)


def drawn(random: Random) -> list[Sent]:
    """Records of all keys, some of them out of order, and then one of each partition that lets the others go."""
    sent, time = [], 0
    for number in range(60):
        time += random.randint(0, 6)
        value = None if random.random() < 0.1 else str(number)
        sent.append(Sent("in", random.choice(KEYS), value, max(0, time - random.choice((0, 0, 0, 10, 80)))))
    late = [Sent("in", key, "late", END - TIME_TO_LIVE + 1) for key in random.sample(KEYS, 2)]
    return [*sent, *late, *(Sent("in", key, "end", END) for key in ("end0", "end1", "end2", "end3"))]


def planned(make: Any, guarantee: str, cache: int) -> tuple[TopologyPlan, StreamsConfig]:
    builder = StreamsBuilder()
    make(builder, Materialized("result", time_to_live=TIME_TO_LIVE)).to_stream().to("out")
    config = simulated(**{"statestore.cache.max.bytes": cache, "processing.guarantee": guarantee})
    return builder.build().plan(config), config


def check(make: Any, guarantee: str, count: int) -> None:
    plans = [planned(make, guarantee, cache) for cache in (0, 10_000_000)]
    for seed in range(count):
        random = Random(seed)
        sent = drawn(random)
        cluster = TickingCluster(*random.choice(plans), {"in": PARTITIONS, "out": PARTITIONS}, seed)
        cluster.send(sent)
        try:
            cluster.run()
            cluster.settle()
            rows = cluster.rows("result")
        finally:
            cluster.close()
        expected = {record.key: record.value for record in sent if record.value in ("late", "end")}
        written = {(key or b"").decode(): value.decode() for key, value in cluster.table("out").items()}

        assert (rows, written) == (expected, expected), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("make", [of_records, aggregated])
def test_only_rows_that_are_not_due_are_left_in_the_end_although_workers_die(make: Any, guarantee: str) -> None:
    check(make, guarantee, schedules(15))


@pytest.mark.parametrize("cache", [0, 10_000_000])
def test_a_table_that_gets_a_time_to_live_later_loses_the_rows_that_it_has_already(cache: int) -> None:
    builder = StreamsBuilder()
    builder.table("in", materialized=Materialized("result")).to_stream().to("out")
    plan, config = planned(of_records, "at_least_once", cache)
    counts = {"in": PARTITIONS, "out": PARTITIONS}
    before = TickingCluster(builder.build().plan(config), config, counts, 0)
    after = TickingCluster(plan, config, counts, 0)
    rows = [Sent("in", key, "old", number) for number, key in enumerate(KEYS)]
    end = [Sent("in", key, "end", END) for key in ("end0", "end1", "end2", "end3")]
    before.crashes_left = after.crashes_left = 0
    before.send([*rows, *(Sent("in", key, "young", END - 1) for key in KEYS[:2])])
    before.run()
    for place, log in before.logs.items():
        after.logs[place].extend(log)
    for old, new in zip(before.runners, after.runners, strict=True):
        assert isinstance(old, MortalRunner)
        assert isinstance(new, PunctuatedRunner)
        new.follow(old)
    after.send(end)
    after.run()
    after.settle()

    expected = dict.fromkeys(KEYS[:2], "young") | dict.fromkeys(("end0", "end1", "end2", "end3"), "end")
    assert after.rows("result") == expected
    assert {(key or b"").decode(): value.decode() for key, value in after.table("out").items()} == expected
    before.close()
    after.close()


@pytest.mark.nightly
def test_where_entries_of_the_index_go_before_the_deletions_are_sent_rows_stay_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work_off = ExpiryIndex.work_off

    def at_once(index: ExpiryIndex, entry: Entry) -> None:
        work_off(index, entry)
        index._sent.add(entry.place)
        index.flush_cache()

    monkeypatch.setattr(ExpiryIndex, "work_off", at_once)

    with pytest.raises(AssertionError, match="seed"):
        check(of_records, "at_least_once", schedules(150))


@pytest.mark.nightly
def test_where_repeated_records_are_taken_for_new_ones_rows_have_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CurrentRecord, "replayed", property(lambda record: False, lambda record, value: None))

    with pytest.raises(AssertionError, match="seed"):
        check(of_records, "at_least_once", schedules(450))


@pytest.mark.nightly
def test_where_deletions_are_not_told_again_tables_below_keep_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    until = ExpiryIndex.until
    monkeypatch.setattr(
        ExpiryIndex, "until", lambda index, *given: [entry._replace(before=False) for entry in until(index, *given)]
    )

    with pytest.raises(AssertionError, match="seed"):
        check(of_records, "at_least_once", schedules(150))
