"""Aggregation of sessions in the fluent layer: what is refused, names, serdes, stores, late records, restarts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    BuiltInDslStoreSuppliers,
    ConfigError,
    EmitStrategy,
    Grouped,
    KStream,
    Materialized,
    Produced,
    Serdes,
    SessionWindowedKStream,
    SessionWindows,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    Window,
    Windowed,
)
from pykstreams.serdes import JsonSerde, SessionWindowedSerde
from pykstreams.state import AggregationWithHeaders, SessionStore, SessionStoreWithHeaders
from pykstreams.testing import TopologyTestDriver
from tests.unit.dsl.test_windowed import CONFIG, TEXT, Runs, drive, grouped, read

TEN = SessionWindows(10)
KEYS = SessionWindowedSerde(TEXT)
LONG = Serdes.long()


def sessions(builder: StreamsBuilder | None = None, windows: SessionWindows = TEN) -> SessionWindowedKStream[str, str]:
    return grouped(builder).windowed_by(windows)


def session(key: str, start: int, end: int) -> Windowed[str]:
    return Windowed(key, Window(start, end))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: sessions().emit_strategy("on_window_close"),  # type: ignore[arg-type]
            TypeError,
            "emit strategy is 'on_window_close'; expected a member of EmitStrategy",
        ),
        (
            lambda: sessions(windows=SessionWindows(10, grace=5)).count(materialized=Materialized("ses", retention=14)),
            ValueError,
            "retention of session store 'ses' is 14 ms, less than inactivity gap 10 ms + grace 5 ms, which its "
            "sessions need; give Materialized a retention of at least 15 ms or none",
        ),
        (
            lambda: sessions().count(materialized=Materialized("ses", retention=timedelta(seconds=-1))),
            ValueError,
            "it must not be negative",
        ),
        (
            lambda: sessions().count(materialized=Materialized(Stores.in_memory_key_value_store("ses"))),
            TypeError,
            "expected a name or a supplier of a session store, such as Stores.persistent_session_store",
        ),
        (
            lambda: sessions().count(late_records_to=5),  # type: ignore[arg-type]
            TypeError,
            "late_records_to is 5; expected the name of a topic, or a function that takes the stream of late records",
        ),
    ],
)
def test_sessions_that_cannot_be_aggregated_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        make()

    assert message in str(caught.value)


def test_counts_are_longs_under_session_keys() -> None:
    builder = StreamsBuilder()
    sessions(builder).count().to_stream().to("out")
    with drive(builder, ("a", "x", 5), ("a", "y", 9)) as driver:
        assert read(driver, "out", KEYS, LONG) == [
            (session("a", 5, 5), 1, 5, ()),
            (session("a", 5, 5), None, 5, ()),
            (session("a", 5, 9), 2, 9, ()),
        ]


def test_reduce_and_aggregate_merge_sessions() -> None:
    builder = StreamsBuilder()
    windowed = sessions(builder, SessionWindows(10, grace=50))
    windowed.reduce(lambda aggregate, value: aggregate + value).to_stream().to("reduced", Produced(key_serde=KEYS))
    aggregated = windowed.aggregate(
        list,
        lambda key, value, seen: [*seen, value],
        lambda key, some, others: some + others,
        materialized=Materialized("lists", value_serde=JsonSerde()),
    )
    with drive(builder, ("a", "x", 0), ("a", "z", 20), ("a", "y", 10)) as driver:
        assert read(driver, "reduced", KEYS)[-1] == (session("a", 0, 20), "xzy", 20, ())
        store = driver.get_session_store("lists")
        assert store is not None
        assert store.fetch_session("a", 0, 20) == ["x", "z", "y"]
    assert aggregated.queryable_store_name == "lists"


def test_names_and_nodes_are_those_of_kafka_streams() -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    stream.group_by(lambda _, value: value).windowed_by(TEN).count(name="visits", materialized="ses").to_stream().to(
        "out"
    )
    text = str(builder.build().describe())

    assert "Processor: visits (stores: [ses])" in text
    assert "Source: ses-repartition-source (topics: [ses-repartition])" in text


@pytest.mark.parametrize(
    ("strategy", "caching"), [(EmitStrategy.ON_WINDOW_UPDATE, True), (EmitStrategy.ON_WINDOW_CLOSE, False)]
)
def test_sessions_that_are_emitted_on_close_have_no_cache(strategy: EmitStrategy, caching: bool) -> None:
    builder = StreamsBuilder()
    sessions(builder).emit_strategy(strategy).count(materialized="ses")

    config = StreamsConfig({"application.id": "app"})

    assert builder.build().plan(config).whole.stores["ses"].caching is caching


def test_a_changelog_is_kept_as_long_as_sessions_may_grow_whatever_the_supplier_keeps() -> None:
    builder = StreamsBuilder()
    kept = Stores.in_memory_session_store("ses", 100_000)
    sessions(builder, SessionWindows(10, grace=5)).count(materialized=Materialized(kept))
    plan = builder.build().plan(CONFIG).whole

    assert plan.changelog_topics["app-ses-changelog"].config == {
        "message.timestamp.type": "CreateTime",
        "cleanup.policy": "compact,delete",
        "retention.ms": str(15 + 86_400_000),
    }


@pytest.mark.parametrize("store_type", [None, BuiltInDslStoreSuppliers.IN_MEMORY])
def test_stores_can_be_queried_as_sessions(store_type: Any) -> None:
    builder = StreamsBuilder()
    sessions(builder).count(materialized=Materialized("ses", store_type=store_type))
    with drive(builder, ("a", "x", 5), ("b", "y", 9)) as driver:
        store = driver.get_session_store("ses")

        assert isinstance(store, SessionStore)
        with store.fetch_range("a", "b") as rows:
            assert [(key, value) for key, value in rows] == [(session("a", 5, 5), 1), (session("b", 9, 9), 1)]
        assert [(row.key, row.start, row.end) for row in driver.raw_store("ses")] == [(b"a", 5, 5), (b"b", 9, 9)]
        with pytest.raises(ValueError, match="no SessionStoreWithHeaders"):
            driver.get_session_store_with_headers("ses")
        with pytest.raises(ValueError, match="no KeyValueStore"):
            driver.get_key_value_store("ses")
        assert driver.get_session_store("none") is None


def test_a_store_with_headers_shows_aggregates_alone_unless_asked_for_more() -> None:
    builder = StreamsBuilder()
    sessions(builder).count(materialized="ses")
    config = StreamsConfig({**CONFIG.originals, "dsl.store.format": "HEADERS"})
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("a", "x", 5)
        whole, plain = driver.get_session_store_with_headers("ses"), driver.get_session_store("ses")
        assert isinstance(whole, SessionStoreWithHeaders)
        assert plain is not None
        assert whole.fetch_session("a", 5, 5) == AggregationWithHeaders(1)
        assert plain.fetch_session("a", 5, 5) == 1
        plain.remove(session("a", 5, 5))
        plain.put(session("a", 7, 8), 3)

        for rows in (
            plain.fetch("a"),
            plain.fetch_range(None, None, reverse=True),
            plain.find_sessions("a", 0, 9),
            plain.find_sessions_range("a", "a", 0, 9),
            plain.find_sessions_by_end(0, 9),
        ):
            with rows:
                assert list(rows) == [(session("a", 7, 8), 3)]
        assert list(plain.sessions_ended(0, 9)) == [(session("a", 7, 8), 3, 8)]


def test_a_table_of_sessions_can_be_joined_with_another() -> None:
    builder = StreamsBuilder()
    counts = sessions(builder).count()
    joined = counts.join(sessions(builder).reduce(lambda a, b: a + b), lambda count, text: f"{count} {text}")
    joined.to_stream().to("out", Produced(key_serde=KEYS, value_serde=TEXT))
    with drive(builder, ("a", "x", 5), ("a", "y", 6)) as driver:
        assert [row[:2] for row in read(driver, "out", KEYS)][-1] == (session("a", 5, 6), "2 xy")


def test_late_records_go_to_a_topic_as_they_are() -> None:
    builder = StreamsBuilder()
    sessions(builder).count(late_records_to="late").to_stream().to("out")
    with drive(builder, ("a", "x", 100), ("b", "late", 3, (("h", b"1"),)), ("a", "y", 90)) as driver:
        assert read(driver, "late") == [("b", "late", 3, (("h", b"1"),))]
        assert {key.key for key, *_ in read(driver, "out", KEYS, LONG)} == {"a"}


def test_late_records_go_to_a_stream_of_the_same_serdes() -> None:
    builder = StreamsBuilder()

    def keep(late: KStream[str, str]) -> None:
        late.map_values(lambda value: f"late {value}").to("late")

    sessions(builder).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count(late_records_to=keep)
    with drive(builder, ("a", "x", 100), ("b", "y", 3)) as driver:
        assert read(driver, "late") == [("b", "late y", 3, ())]


def test_what_was_emitted_on_close_is_not_emitted_again_after_a_restart() -> None:
    builder = StreamsBuilder()
    stored: Materialized[str, int] = Materialized("ses", store_type=BuiltInDslStoreSuppliers.IN_MEMORY, retention=1000)
    closing = sessions(builder, SessionWindows(5)).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
    closing.count(materialized=stored).to_stream(lambda windowed, _: windowed.key).to(
        "out", Produced(key_serde=TEXT, value_serde=LONG)
    )
    runs = Runs(builder)

    first = runs.run(("a", 9), ("b", 19), ("c", 25))
    second = runs.run(("d", 26), ("e", 60))

    assert (first, second) == ([b"a", b"b"], [b"c", b"d"])


def test_a_key_serde_that_is_missing_is_named_with_its_store() -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    stream.group_by_key(Grouped()).windowed_by(TEN).count(materialized="ses")
    config = StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1"})

    with pytest.raises(ConfigError, match="and store 'ses' need a key serde and none is set"):
        TopologyTestDriver(builder.build(), config)


def test_a_users_own_supplier_in_rocksdb_can_be_emitted_on_close() -> None:
    builder = StreamsBuilder()
    kept: Materialized[str, int] = Materialized(Stores.persistent_session_store("ses", 1000))
    sessions(builder).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count(materialized=kept).to_stream().to("out")
    with drive(builder, ("b", "x", 6), ("a", "x", 5), ("a", "y", 40)) as driver:
        assert [row[0] for row in read(driver, "out", KEYS, LONG)] == [session("a", 5, 5), session("b", 6, 6)]
