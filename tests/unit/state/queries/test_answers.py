"""What answers have in common, and which queries each kind of store has an answer to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import SerializationError
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import Stores
from pykstreams.state.interfaces.position import Position, PositionBound
from pykstreams.state.interfaces.queries import (
    KeyQuery,
    MultiVersionedKeyQuery,
    RangeQuery,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.query_results import FailureReason, QueryConfig, QueryResult
from pykstreams.state.queries.answers import NO_ANSWER, Answer, answered
from tests.unit.state.support import Context

TEXT = StringSerde()
QUERIES: dict[str, Query[Any]] = {
    "key": KeyQuery("a"),
    "key with time": TimestampedKeyQuery("a"),
    "range": RangeQuery(),
    "range with times": TimestampedRangeQuery(),
    "windows of a key": WindowKeyQuery("a", 0, 10),
    "windows": WindowRangeQuery(time_from=0, time_to=10),
    "sessions": WindowRangeQuery(key="a"),
    "version": VersionedKeyQuery("a"),
    "versions": MultiVersionedKeyQuery("a"),
}
BUILDERS: dict[str, Any] = {
    "plain": Stores.key_value_store_builder(Stores.in_memory_key_value_store("plain"), TEXT, TEXT),
    "timestamped": Stores.timestamped_key_value_store_builder(Stores.in_memory_key_value_store("timed"), TEXT, TEXT),
    "window": Stores.window_store_builder(Stores.in_memory_window_store("windows", 100, 10), TEXT, TEXT),
    "session": Stores.session_store_builder(Stores.in_memory_session_store("sessions", 100), TEXT, TEXT),
    "versioned": Stores.versioned_key_value_store_builder(
        Stores.in_memory_versioned_key_value_store("versions", 100), TEXT, TEXT
    ),
}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("plain", {"key", "range"}),
        ("timestamped", {"key", "range", "key with time", "range with times"}),
        ("window", {"windows of a key", "windows"}),
        ("session", {"sessions"}),
        ("versioned", {"version", "versions"}),
    ],
)
def test_each_kind_of_store_answers_its_own_queries(tmp_path: Path, kind: str, expected: set[str]) -> None:
    store = BUILDERS[kind].build()
    store.init(Context(tmp_path))
    try:
        results = {
            name: store.query(query, PositionBound.UNBOUNDED, QueryConfig(collect_execution_info=False))
            for name, query in QUERIES.items()
        }
        for result in results.values():
            if result.is_success and hasattr(result.result, "close"):
                result.result.close()
    finally:
        store.close()

    assert {name for name, result in results.items() if result.is_success} == expected
    assert {result.failure_reason for result in results.values() if result.is_failure} == {
        FailureReason.UNKNOWN_QUERY_TYPE
    }


def ask(answer: Answer, *, bound: int | None = None, partition: int | None = 0, info: bool = False) -> QueryResult[Any]:
    """Asks a store that has come to offset 7."""
    wanted = PositionBound.UNBOUNDED
    if bound is not None:
        wanted = PositionBound.at(Position.from_mapping({"orders": {0: bound}}))

    def position_of(*, below_cache: bool = False) -> Position:
        return Position.from_mapping({"orders": {0: 7}})

    store = BUILDERS["plain"].build()
    return answered(store, answer, KeyQuery("a"), wanted, QueryConfig(info), position_of, partition)


@pytest.mark.parametrize(("bound", "found"), [(None, True), (7, True), (8, False)])
def test_a_store_answers_when_it_has_come_as_far_as_the_bound(bound: int | None, found: bool) -> None:
    result = ask(lambda query: "row", bound=bound)

    assert result.is_success == found
    assert result.position == Position.from_mapping({"orders": {0: 7}})


def test_a_store_that_is_not_open_is_not_asked() -> None:
    result = ask(lambda query: pytest.fail("it was asked"), partition=None)

    assert result.failure_reason is FailureReason.NOT_UP_TO_BOUND


def test_nothing_found_is_an_answer_and_no_answer_is_none() -> None:
    assert ask(lambda query: None).result is None
    assert ask(lambda query: NO_ANSWER).failure_reason is FailureReason.UNKNOWN_QUERY_TYPE


def test_a_store_that_fails_says_how_and_a_wrong_key_is_raised() -> None:
    def fails(error: Exception) -> Answer:
        def answer(query: Query[Any]) -> object:
            raise error

        return answer

    failed = ask(fails(ValueError("broken")))

    assert failed.failure_reason is FailureReason.STORE_EXCEPTION
    assert "store 'plain' failed to answer" in failed.failure_message
    with pytest.raises(SerializationError, match="no text"):
        ask(fails(SerializationError("no text")))


def test_execution_info_names_the_store_where_it_is_asked_for() -> None:
    (line,) = ask(lambda query: "row", info=True).execution_info

    assert line.startswith("handled by MeteredKeyValueStore 'plain' in ")
    assert ask(lambda query: "row").execution_info == []
