"""``KStream.to_sql``: what may lie above it, and what is refused with the cure."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pykstreams import (
    BufferConfig,
    Consumed,
    FixedKeyProcessor,
    FixedKeyRecord,
    Joined,
    KStream,
    Materialized,
    Produced,
    Repartitioned,
    Retry,
    Serdes,
    SqlSink,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyError,
)
from pykstreams.state import Stores
from pykstreams.testing import TopologyTestDriver

Words = KStream[str, str]


async def shout(value: str) -> str:
    return value.upper()


class Same(FixedKeyProcessor[str, str, str]):
    def process(self, record: FixedKeyRecord[str, str]) -> None:
        self.context.forward(record)


def sink_in(url: str) -> SqlSink[Any, Any]:
    return SqlSink(url, "insert into effects values (:word)", lambda key, value: {"word": f"{key}={value}"})


def new_builder() -> tuple[StreamsBuilder, Words]:
    builder = StreamsBuilder()
    return builder, builder.stream("words", Consumed(key_serde=Serdes.string(), value_serde=Serdes.string()))


def counted(words: Words) -> KStream[Any, Any]:
    return words.group_by_key().count().to_stream()


def final_counts(words: Words) -> KStream[Any, Any]:
    windows = TimeWindows(timedelta(seconds=1), grace=timedelta(0))
    windowed = words.group_by_key().windowed_by(windows).count()
    return windowed.suppress(Suppressed.until_window_closes(BufferConfig.UNBOUNDED)).to_stream()


LATER: dict[str, Callable[[Words], KStream[Any, Any]]] = {
    "aggregate": counted,
    "suppress": final_counts,
    "map_values_async": lambda words: words.map_values_async(shout),
    "retry": lambda words: words.map_values(str.upper, retry=Retry(retry_on=OSError)),
    "process_values": lambda words: words.process_values(Same),
    "table": lambda words: words.to_table().to_stream(),
    "merged": lambda words: words.merge(words.map_values_async(shout)),
    "branch": lambda words: (
        words.map_values_async(shout)
        .split()
        .branch(lambda key, value: True)
        .no_default_branch()["KSTREAM-BRANCH-00000000021"]
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_steps_that_forward_later_are_refused_with_the_cure(name: str) -> None:
    builder, words = new_builder()
    LATER[name](words).filter(lambda key, value: True).to_sql(sink_in("sqlite://"), name="rows")

    with pytest.raises(TopologyError, match=r"put \.repartition\(\) between it and \.to_sql\(\)"):
        builder.build()


def test_a_join_with_grace_is_refused() -> None:
    builder, words = new_builder()
    history = Materialized[str, str](Stores.persistent_versioned_key_value_store("history", timedelta(hours=1)))
    consumed = Consumed(key_serde=Serdes.string(), value_serde=Serdes.string())
    table = builder.table("table", consumed, materialized=history)
    joined = words.join(table, lambda word, found: word, joined=Joined(grace_period=timedelta(seconds=1)))
    joined.to_sql(sink_in("sqlite://"), name="rows")

    with pytest.raises(TopologyError, match="may forward records later"):
        builder.build()


def test_behind_a_repartition_topic_everything_may_come() -> None:
    builder, words = new_builder()
    repartitioned = Repartitioned(key_serde=Serdes.string(), value_serde=Serdes.long())
    counted(words).repartition(repartitioned).to_sql(sink_in("sqlite://"), name="rows")

    assert "rows" in builder.build().describe().__str__()


def test_steps_that_forward_at_once_may_lie_above(tmp_path: Path) -> None:
    builder, words = new_builder()
    titles = builder.table("titles", Consumed(key_serde=Serdes.string(), value_serde=Serdes.string()))
    (
        words.filter(lambda key, value: value != "skip")
        .flat_map_values(str.split)
        .left_join(titles, lambda word, title: f"{title} {word}")
        .map(lambda key, value: (key.upper(), value))
        .select_key(lambda key, value: key.lower())
        .peek(lambda key, value: None)
        .to_sql(sink_in(f"sqlite:///{tmp_path / 'effects.db'}"), name="rows")
    )
    with closing(sqlite3.connect(tmp_path / "effects.db")) as database:
        database.execute("create table effects (word text)")
        with TopologyTestDriver(builder.build()) as driver:
            driver.create_input_topic("titles", Serdes.string(), Serdes.string()).pipe_input("k", "Dr")
            topic = driver.create_input_topic("words", Serdes.string(), Serdes.string())
            topic.pipe_input("k", "a b")
            topic.pipe_input("k", "skip")
            topic.pipe_input("x", "c")

        rows = database.execute("select word from effects").fetchall()
        assert rows == [("k=Dr a",), ("k=Dr b",), ("x=None c",)]


def test_a_stream_may_go_into_a_database_and_a_topic() -> None:
    builder, words = new_builder()
    words.to_sql(sink_in("sqlite://"), name="rows")
    words.to("out", Produced(key_serde=Serdes.string(), value_serde=Serdes.string()))

    assert str(builder.build().describe()) == (
        "Topologies:\n"
        "   Sub-topology: 0\n"
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [words])\n"
        "      --> KSTREAM-SINK-0000000002, rows\n"
        "    Sink: KSTREAM-SINK-0000000002 (topic: out)\n"
        "      <-- KSTREAM-SOURCE-0000000000\n"
        "    Processor: rows (stores: [])\n"
        "      --> none\n"
        "      <-- KSTREAM-SOURCE-0000000000\n\n"
    )


def test_what_is_no_sink_is_refused() -> None:
    _, words = new_builder()

    with pytest.raises(TypeError, match="expected a SqlSink"):
        words.to_sql("sqlite://", name="rows")  # type: ignore[arg-type]  # a user without a type checker


def test_the_password_of_a_database_is_not_shown() -> None:
    sink: SqlSink[str, str] = SqlSink(
        "postgresql://shop:secret@db/shop", "insert into orders values (:id)", lambda key, value: None
    )

    assert "secret" not in repr(sink)
