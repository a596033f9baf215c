"""Interactive queries, version 2: what each kind of store answers, and what is told instead of an answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pykstreams import KStream, Stores, StreamsBuilder, ValueAndTimestamp, Window, Windowed
from pykstreams.core.errors import SerializationError, StreamsRebalancingError, UnknownStateStoreError
from pykstreams.core.ids import TopicPartition
from pykstreams.query import (
    FailureReason,
    KeyQuery,
    MultiVersionedKeyQuery,
    Position,
    PositionBound,
    Query,
    QueryConfig,
    QueryResult,
    RangeQuery,
    ResultOrder,
    StateQueryResult,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.runtime.tasks.gate import Gate
from pykstreams.state import StateStore, VersionedRecord
from tests.unit.runtime.queries.queried import TOPIC, Application
from tests.unit.runtime.queries.test_store_queries import Kept, make, sessions, table, versioned, windowed

__all__ = ["make"]  # a fixture

Make = Callable[..., Application]


R = TypeVar("R")


def rows(result: StateQueryResult[Any]) -> list[Any]:
    """The rows of the only partition."""
    found = result.only_partition_result
    assert found is not None, result
    with found.result as iterator:
        return list(iterator)


def only(result: StateQueryResult[R]) -> R:
    """The result of the only partition that has one."""
    assert result.only_partition_result is not None
    return result.only_partition_result.result


def reason(result: StateQueryResult[Any], partition: int = 0) -> FailureReason:
    return result.partition_results[partition].failure_reason


def message(result: StateQueryResult[Any], partition: int = 0) -> str:
    return result.partition_results[partition].failure_message


def test_key_and_range_of_a_table_are_answered_with_and_without_timestamps(make: Make) -> None:
    app = make(table())
    app.feed(("b", "2", 6), ("a", "1", 5), ("c", "3", 7))
    values = {"a": ValueAndTimestamp("1", 5), "b": ValueAndTimestamp("2", 6), "c": ValueAndTimestamp("3", 7)}

    assert only(app.query("prices", KeyQuery("a"))) == "1"
    assert only(app.query("prices", TimestampedKeyQuery("a"))) == values["a"]
    assert app.query("prices", KeyQuery("z")).partition_results[0].result is None
    assert rows(app.query("prices", RangeQuery("a", "b"))) == [("a", "1"), ("b", "2")]
    assert rows(app.query("prices", RangeQuery(order=ResultOrder.DESCENDING))) == [("c", "3"), ("b", "2"), ("a", "1")]
    assert rows(app.query("prices", TimestampedRangeQuery(lower="b"))) == [("b", values["b"]), ("c", values["c"])]


def test_store_with_headers_answers_without_them(make: Make) -> None:
    app = make(table(Stores.persistent_timestamped_key_value_store_with_headers("prices")))
    app.feed(("a", "1", 5))

    assert only(app.query("prices", KeyQuery("a"))) == "1"
    assert only(app.query("prices", TimestampedKeyQuery("a"))) == ValueAndTimestamp("1", 5)


def test_skipping_the_cache_gives_what_was_forwarded_and_the_position_of_that(make: Make) -> None:
    app = make(table())
    app.feed(("a", "1", 5))
    app.commit()
    app.feed(("a", "2", 6))
    cached, written = (app.query("prices", KeyQuery("a", skip_cache=skip)) for skip in (False, True))

    assert (only(cached), only(written)) == ("2", "1")
    assert cached.position == Position.from_mapping({TOPIC: {0: 1}})
    assert written.position == Position.from_mapping({TOPIC: {0: 0}})


def test_windows_are_answered_by_key_and_by_time(make: Make) -> None:
    app = make(windowed())
    app.feed(("a", "x", 5), ("b", "x", 12), ("a", "x", 25))

    assert rows(app.query("counts", WindowKeyQuery("a", 0, 100))) == [
        (0, ValueAndTimestamp(1, 5)),
        (20, ValueAndTimestamp(1, 25)),
    ]
    assert rows(app.query("counts", WindowRangeQuery(time_from=10, time_to=20))) == [
        (Windowed("a", Window(20, 30)), ValueAndTimestamp(1, 25)),
        (Windowed("b", Window(10, 20)), ValueAndTimestamp(1, 12)),
    ]
    assert reason(app.query("counts", WindowRangeQuery(key="a"))) is FailureReason.UNKNOWN_QUERY_TYPE


def test_sessions_are_answered_by_key(make: Make) -> None:
    app = make(sessions())
    app.feed(("a", "x", 5), ("a", "x", 7), ("b", "x", 8))

    assert rows(app.query("counts", WindowRangeQuery(key="a"))) == [(Windowed("a", Window(5, 7)), 2)]
    by_time = WindowRangeQuery[str, int](time_from=0, time_to=9)
    assert reason(app.query("counts", by_time)) is FailureReason.UNKNOWN_QUERY_TYPE


def test_versions_are_answered_as_of_a_time_and_as_a_history(make: Make) -> None:
    app = make(versioned())
    app.feed(("a", "1", 100), ("a", "2", 200), ("a", "3", 300))
    first, second = VersionedRecord("1", 100, 200), VersionedRecord("2", 200, 300)
    as_of = datetime(1970, 1, 1, 0, 0, 0, 150_000, tzinfo=UTC)

    assert only(app.query("prices", VersionedKeyQuery("a"))) == VersionedRecord("3", 300)
    assert only(app.query("prices", VersionedKeyQuery("a", as_of=300))) == VersionedRecord("3", 300)
    assert only(app.query("prices", VersionedKeyQuery("a", as_of=as_of))) == first
    assert app.query("prices", VersionedKeyQuery("a", as_of=99)).partition_results[0].result is None
    between = MultiVersionedKeyQuery[str, str]("a", from_time=150, to_time=250)
    assert rows(app.query("prices", between)) == [second, first]
    ascending = MultiVersionedKeyQuery[str, str]("a", to_time=250, order=ResultOrder.ASCENDING)
    assert rows(app.query("prices", ascending)) == [first, second]


@pytest.mark.parametrize(
    "query",
    [
        KeyQuery("a"),
        TimestampedKeyQuery("a"),
        RangeQuery("a"),
        TimestampedRangeQuery("a"),
        WindowKeyQuery("a", 0, 1),
        WindowRangeQuery(key="a"),
    ],
    ids=lambda query: type(query).__name__,
)
def test_query_that_does_not_fit_the_store_is_of_unknown_type(make: Make, query: Query[Any]) -> None:
    app = make(versioned())
    result = app.query("prices", query)

    assert reason(result) is FailureReason.UNKNOWN_QUERY_TYPE
    assert message(result) == (
        f"a MeteredVersionedStore cannot answer {query!r}; take a query that fits the kind of the store"
    )


def test_plain_store_has_no_timestamps_to_answer_with(make: Make) -> None:
    from pykstreams import Processor

    class Keep(Processor[str, str, str, str]):
        def process(self, record: Any) -> None:
            self.context.get_state_store("plain").put(record.key, record.value)

    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value_store_builder(Stores.persistent_key_value_store("plain")))
    stream: KStream[str, str] = builder.stream(TOPIC)
    stream.process(Keep, "plain")
    app = make(builder)
    app.feed(("a", "1", 5))

    assert only(app.query("plain", KeyQuery("a"))) == "1"
    assert reason(app.query("plain", TimestampedKeyQuery("a"))) is FailureReason.UNKNOWN_QUERY_TYPE
    assert reason(app.query("plain", TimestampedRangeQuery())) is FailureReason.UNKNOWN_QUERY_TYPE


def test_partitions_are_asked_and_missing_ones_are_told_apart(make: Make) -> None:
    app = make(table(), partitions=3)
    app.feed(("a", "1", 5), partition=1)
    del app.started[app.by_partition[2]]  # another instance has it
    result = app.query("prices", KeyQuery("a"), partitions=[1, 2, 7])

    assert app.query("prices", KeyQuery("a")).partition_results.keys() == {0, 1}
    assert result.partition_results[1].result == "1"
    assert reason(result, 2) is FailureReason.NOT_PRESENT
    assert message(result, 2) == "partition 2 of store 'prices' is not in this process; ask the instance that has it"
    assert reason(result, 7) is FailureReason.DOES_NOT_EXIST
    assert message(result, 7) == "store 'prices' has no partition 7, here or anywhere else"


def test_partition_that_closes_while_it_is_asked_is_not_present(make: Make) -> None:
    app = make(table())
    app.by_partition[0].stores["prices"].close()

    assert app.query("prices", KeyQuery("a")).partition_results == {}
    assert reason(app.query("prices", KeyQuery("a"), partitions=[0])) is FailureReason.NOT_PRESENT


def test_position_says_which_records_are_in_and_bounds_hold_answers_back(make: Make) -> None:
    app = make(table(), partitions=2)
    app.feed(("a", "1", 5), ("a", "2", 6), partition=1)
    position = app.query("prices", KeyQuery("a")).position
    bound = PositionBound.at(Position().with_component(TOPIC, 1, 2))
    early = app.query("prices", KeyQuery("a"), bound=bound)
    app.feed(("a", "3", 7), partition=1)

    assert position == Position.from_mapping({TOPIC: {1: 1}})
    assert reason(early, 1) is FailureReason.NOT_UP_TO_BOUND
    assert message(early, 1) == (
        "partition 1 of the store is at Position({'in': {1: 1}}), not yet up to Position({'in': {1: 2}}); ask again"
    )
    assert early.partition_results[0].result is None
    assert only(app.query("prices", KeyQuery("a"), bound=bound)) == "3"


def test_position_after_a_restart_is_that_of_the_last_commit(make: Make) -> None:
    app = make(table(), committed={0: 42})

    assert app.by_partition[0].stores["prices"].position == Position.from_mapping({TOPIC: {0: 41}})
    app.feed(("a", "1", 5))
    assert app.by_partition[0].stores["prices"].position == Position.from_mapping({TOPIC: {0: 42}})


def test_store_that_is_restored_answers_without_a_bound_and_has_no_position(make: Make) -> None:
    app = make(table(), start=False)
    app.restored[0][0].restore([(b"a", b"1", 5, ())])
    bound = PositionBound.at(Position().with_component(TOPIC, 0, 0))

    assert only(app.query("prices", KeyQuery("a"))) == "1"
    assert app.query("prices", KeyQuery("a")).position == Position()
    assert reason(app.query("prices", KeyQuery("a"), bound=bound)) is FailureReason.NOT_UP_TO_BOUND


def test_active_tasks_are_required_to_run_in_a_worker_that_has_all_of_its_tasks(make: Make) -> None:
    app = make(table(), start=False)
    restoring = app.query("prices", KeyQuery("a"), require_active=True)
    app.start()
    app.all_running = False
    rebalancing = app.query("prices", KeyQuery("a"), require_active=True)
    app.all_running = True
    bound = PositionBound.at(Position().with_component(TOPIC, 0, 9))
    running = app.query("prices", KeyQuery("a"), require_active=True, bound=bound)

    assert reason(restoring) is reason(rebalancing) is FailureReason.NOT_ACTIVE
    assert message(restoring) == "task 0_0 is being restored, and require_active was given; ask again"
    assert message(rebalancing) == (
        "task 0_0 runs, but worker-1 is in a rebalance, and require_active was given; ask again"
    )
    assert running.partition_results[0].is_success


def test_execution_info_tells_who_answered_and_how_long_it_waited(make: Make) -> None:
    app = make(table())
    told = app.query("prices", KeyQuery("a"), execution_info=True).partition_results[0].execution_info

    assert [line.partition(" in ")[0] for line in told] == [
        "handled by MeteredTimestampedKeyValueStore 'prices'",
        "waited 0 us for the batch of store 'prices' of task 0_0",
    ]
    assert app.query("prices", KeyQuery("a")).partition_results[0].execution_info == []


def test_key_of_another_type_is_the_callers_error(make: Make) -> None:
    app = make(table())

    with pytest.raises(SerializationError):
        app.query("prices", KeyQuery(5))


def test_exception_of_a_store_is_told_in_its_result(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make(table())

    def fail(key: Any, *, skip_cache: bool) -> None:
        raise OSError("disk")

    monkeypatch.setattr(app.by_partition[0].stores["prices"], "peek", fail)
    result = app.query("prices", KeyQuery("a"))

    assert reason(result) is FailureReason.STORE_EXCEPTION
    assert message(result) == ("store 'prices' failed to answer KeyQuery(key='a', skip_cache=False): OSError('disk')")


def test_global_store_answers_as_a_whole(make: Make, tmp_path: Path) -> None:
    builder = table()
    builder.global_table("rates", materialized="rates")
    app = make(builder)
    app.global_stores["rates"] = LocalStore(
        "rates", "global store 'rates'", Gate("the global stores"), lambda: app.by_partition[0].stores["prices"]
    )
    app.feed(("a", "1", 5))
    result = app.query("rates", KeyQuery("a"))

    assert result.global_result is not None
    assert result.global_result.result == "1"
    assert result.partition_results == {}


def test_global_store_that_is_still_read_from_its_topic_cannot_be_asked(make: Make) -> None:
    builder = table()
    builder.global_table("rates", materialized="rates")
    app = make(builder)

    with pytest.raises(
        StreamsRebalancingError, match=r"^global store 'rates' is still being read from its topic; ask again$"
    ):
        app.query("rates", KeyQuery("a"))


def test_unknown_store_is_an_error(make: Make) -> None:
    app = make(table())

    with pytest.raises(UnknownStateStoreError, match="the topology has no store 'price'"):
        app.queries.check_name("price")


def test_store_of_a_user_knows_no_query_unless_it_says_so() -> None:
    class Answering(Kept):
        def query(self, query: Query[Any], position_bound: PositionBound, config: QueryConfig) -> QueryResult[Any]:
            result = QueryResult.for_result(self.last)
            if config.collect_execution_info:
                result.add_execution_info("looked")
            return result

    silent, answering = Kept("last"), Answering("last")
    answering.last = 5
    query = KeyQuery[str, int]("a")
    unbounded = PositionBound.UNBOUNDED

    assert isinstance(silent, StateStore)
    assert silent.query(query, unbounded, QueryConfig(False)).failure_reason is FailureReason.UNKNOWN_QUERY_TYPE
    assert silent.position == Position()
    assert answering.query(query, unbounded, QueryConfig(True)).result == 5


def test_result_has_either_a_value_or_a_reason() -> None:
    success = QueryResult.for_result(None)
    failure: QueryResult[str] = QueryResult.for_failure(FailureReason.NOT_PRESENT, "elsewhere")

    assert (success.is_success, success.is_failure, success.result) == (True, False, None)
    assert (failure.is_success, failure.is_failure) == (False, True)
    assert (failure.failure_reason, failure.failure_message) == (FailureReason.NOT_PRESENT, "elsewhere")
    with pytest.raises(ValueError, match=r"^this query failed and has no result: NOT_PRESENT: elsewhere$"):
        _ = failure.result
    with pytest.raises(ValueError, match=r"^this query did not fail, so there is no reason; look at is_failure first$"):
        _ = success.failure_reason
    with pytest.raises(
        ValueError, match=r"^this query did not fail, so there is no message; look at is_failure first$"
    ):
        _ = success.failure_message
    not_open: QueryResult[str] = QueryResult.not_up_to_bound(Position(), PositionBound.UNBOUNDED, None)
    assert not_open.failure_message == "the store is not open yet, and so not up to Position({}); ask again"


def test_only_result_is_the_one_with_a_value() -> None:
    none, one, two = (QueryResult.for_result(value) for value in (None, 1, 2))

    assert StateQueryResult({0: none, 1: one}).only_partition_result is one
    assert StateQueryResult({0: none}).only_partition_result is None
    with pytest.raises(ValueError, match=r"^2 partitions gave a result, and one was expected: \{0: QueryResult"):
        _ = StateQueryResult({0: one, 1: two}).only_partition_result


def test_positions_merge_to_the_higher_offset_and_share_nothing() -> None:
    given = {"a": {0: 5}}
    first = Position.from_mapping(given)
    second = first.copy().with_component("a", 0, 3).with_component("b", 1, 7)
    given["a"][0] = 9

    assert first == Position.from_mapping({"a": {0: 5}})
    assert second.merge(Position.from_mapping({"a": {0: 6}})) == Position.from_mapping({"a": {0: 6}, "b": {1: 7}})
    assert second.topics == {"a", "b"}
    assert (second.partition_positions("a"), second.partition_positions("z")) == ({0: 6}, {})
    assert (bool(Position()), Position().is_empty, second.is_empty) == (False, True, False)
    assert PositionBound.at(second).position == second
    assert (PositionBound.UNBOUNDED.is_unbounded, PositionBound.at(second).is_unbounded) == (True, False)
    assert PositionBound.at(first) == PositionBound.at(Position.from_mapping({"a": {0: 5}}))


@pytest.mark.parametrize(
    "make_query",
    [KeyQuery, TimestampedKeyQuery, VersionedKeyQuery, MultiVersionedKeyQuery, lambda key: WindowKeyQuery(key, 0, 1)],
)
def test_null_key_is_refused(make_query: Any) -> None:
    with pytest.raises(TypeError, match=r"^the key of a .*Query is None; a key must not be None$"):
        make_query(None)


def test_ranges_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^the versions of 'a' are asked for from 5 to 4; swap them$"):
        MultiVersionedKeyQuery("a", from_time=5, to_time=4)


@pytest.mark.parametrize(
    "given",
    [{}, {"key": "a", "time_from": 0, "time_to": 1}, {"time_from": 0}, {"key": "a", "time_to": 1}],
    ids=["nothing", "both", "half", "key and half"],
)
def test_window_range_is_either_a_key_or_both_times(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give either a key, for sessions, or both times, for windows"):
        WindowRangeQuery(**given)


def test_copies_are_asked_unless_active_ones_are_required(make: Make) -> None:
    app = make(table(), partitions=2)
    app.feed(("a", "1", 1), partition=0)
    app.feed(("a", "2", 1), partition=1)
    app.keep_copy(1)
    asked = app.query("prices", KeyQuery("a"))
    required = app.query("prices", KeyQuery("a"), require_active=True)

    assert {number: one.result for number, one in asked.partition_results.items()} == {0: "1", 1: "2"}
    assert required.partition_results[0].is_success
    assert required.partition_results[1].failure_reason is FailureReason.NOT_ACTIVE
    assert required.partition_results[1].failure_message == (
        "task 0_1 is a standby task here, and require_active was given; ask again"
    )


def test_copy_answers_within_a_bound_when_it_stands_for_what_was_committed_up_to_there(make: Make) -> None:
    app = make(table(), start=False)
    copy = app.keep_copy(0)
    app.restored[0][0].restore([(b"a", b"1", 5, ())])
    bound = PositionBound.at(Position().with_component(TOPIC, 0, 6))
    copy.reached({TopicPartition(TOPIC, 0): 6})
    behind = app.query("prices", KeyQuery("a"), bound=bound)
    copy.reached({TopicPartition(TOPIC, 0): 7})
    enough = app.query("prices", KeyQuery("a"), bound=bound)

    assert reason(behind) is FailureReason.NOT_UP_TO_BOUND
    assert only(enough) == "1"
    assert enough.position == Position().with_component(TOPIC, 0, 6)
