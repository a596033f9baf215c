"""Suppression in the fluent layer: options, names, what is refused, restarts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    BufferConfig,
    BufferFullStrategy,
    KStream,
    KTable,
    Materialized,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
)
from pykstreams.dsl.aggregations.suppression import grace_above
from pykstreams.errors import (
    LogAndContinueProcessingExceptionHandler,
    ProcessorStateError,
    StreamsError,
    TopologyError,
)
from pykstreams.processors import PassThrough
from pykstreams.testing import TopologyTestDriver
from pykstreams.topology.graph import GraphNode, OperatorNode, WindowClosing

CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "statestore.cache.max.bytes": 0,
    }
)
STRICT = BufferConfig(max_records=2, when_full=BufferFullStrategy.SHUT_DOWN)


def test_a_buffer_with_limits_emits_early_unless_told_to_shut_down() -> None:
    assert [
        config.is_strict
        for config in (
            BufferConfig.UNBOUNDED,
            BufferConfig(max_records=2),
            BufferConfig(max_bytes=2),
            BufferConfig(when_full=BufferFullStrategy.EMIT_EARLY),
            BufferConfig(when_full=BufferFullStrategy.SHUT_DOWN),
            STRICT,
        )
    ] == [True, False, False, False, True, True]


def test_options_are_copied_with_changes() -> None:
    assert BufferConfig().replace(max_records=2) == BufferConfig(max_records=2)
    assert Suppressed.until_time_limit(5, STRICT).replace(name="x") == Suppressed.until_time_limit(5, STRICT, name="x")


def test_times_are_durations() -> None:
    assert Suppressed.until_time_limit(timedelta(seconds=2), STRICT).time_limit_ms == 2000


def test_final_results_need_a_strict_buffer() -> None:
    with pytest.raises(ValueError) as caught:
        Suppressed.until_window_closes(BufferConfig(max_records=2))

    assert str(caught.value) == (
        "BufferConfig(max_records=2, max_bytes=None, when_full=None, logging=True, topic_config=None) would let "
        "results go on before their window closes; leave its limits away, or give it "
        "when_full=BufferFullStrategy.SHUT_DOWN"
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BufferConfig(max_records=-1), "max_records of a BufferConfig is -1; it must not be negative"),
        (lambda: BufferConfig(max_bytes=-5), "max_bytes of a BufferConfig is -5; it must not be negative"),
        (
            lambda: Suppressed.until_time_limit(timedelta(seconds=-1), STRICT),
            "time limit of a suppression is .* must not be negative",
        ),
    ],
)
def test_negative_limits_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_illegal_names_are_refused() -> None:
    with pytest.raises(TopologyError, match="name 'a b' has characters other than"):
        Suppressed.until_time_limit(5, STRICT, name="a b")
    with pytest.raises(TopologyError, match="name 'a b' has characters other than"):
        Suppressed.until_window_closes(STRICT, name="a b")


def plan(suppressed: Suppressed) -> Any:
    builder = StreamsBuilder()
    builder.table("in").suppress(suppressed).to_stream()
    return builder.build().plan(CONFIG)


def test_node_and_store_are_named_by_the_counter() -> None:
    (part,) = plan(Suppressed.until_time_limit(5, BufferConfig())).subtopologies

    assert list(part.nodes)[2:] == ["KTABLE-SUPPRESS-0000000003", "KTABLE-TOSTREAM-0000000005"]
    assert part.nodes["KTABLE-SUPPRESS-0000000003"].stores == ("KTABLE-SUPPRESS-STATE-STORE-0000000004",)
    assert part.changelogs["KTABLE-SUPPRESS-STATE-STORE-0000000004"] == (
        "app-KTABLE-SUPPRESS-STATE-STORE-0000000004-changelog"
    )


def test_a_name_names_node_and_store_and_the_counter_stands_still() -> None:
    (part,) = plan(Suppressed.until_time_limit(5, BufferConfig(), name="calm")).subtopologies

    assert list(part.nodes)[2:] == ["calm", "KTABLE-TOSTREAM-0000000003"]
    assert part.nodes["calm"].stores == ("calm-store",)


def test_the_changelog_has_the_settings_of_the_buffer() -> None:
    config = BufferConfig(topic_config={"retention.ms": "7"})
    (part,) = plan(Suppressed.until_time_limit(5, config, name="calm")).subtopologies

    assert part.changelog_topics["app-calm-store-changelog"].config == {
        "cleanup.policy": "compact",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "7",
    }


def test_logging_may_be_off() -> None:
    (part,) = plan(Suppressed.until_time_limit(5, BufferConfig(logging=False), name="calm")).subtopologies

    assert "calm-store" in part.stores
    assert "calm-store" not in part.changelogs


def test_final_results_need_windows() -> None:
    read: KTable[str, str] = StreamsBuilder().table("in")
    table = read.filter(lambda key, value: True)

    with pytest.raises(TopologyError) as caught:
        table.suppress(Suppressed.until_window_closes(BufferConfig()))

    assert str(caught.value) == (
        "Invalid topology: there are no windows whose end a suppression could wait for in KTABLE-SOURCE-0000000002 -> "
        "KTABLE-FILTER-0000000003; suppress the table of a windowed aggregation, or use Suppressed.until_time_limit"
    )


def graph(*edges: tuple[GraphNode, GraphNode]) -> None:
    for above, below in edges:
        above.add_child(below)


def windowed(name: str, grace_ms: int) -> OperatorNode:
    return OperatorNode(name, PassThrough, closing=WindowClosing(grace_ms))


def test_the_longest_grace_of_joined_tables_counts() -> None:
    root, left, right, join, below = (GraphNode("root"), windowed("l", 3), windowed("r", 7), *map(GraphNode, "jb"))
    graph((root, left), (root, right), (left, join), (right, join), (join, below))

    assert grace_above(below) == 7


def test_every_joined_table_must_have_windows() -> None:
    root, left, right, join = (GraphNode("root"), windowed("l", 3), *map(GraphNode, "rj"))
    graph((root, left), (root, right), (left, join), (right, join))

    with pytest.raises(TopologyError, match="could wait for in r -> j; suppress the table"):
        grace_above(join)


def test_a_full_buffer_ends_the_application_with_a_streams_error() -> None:
    builder = StreamsBuilder()
    builder.table("in").suppress(Suppressed.until_time_limit(5, STRICT, name="calm")).to_stream().to("out")

    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("a", "1", 0)
        topic.pipe_input("b", "1", 0)
        with pytest.raises(StreamsError) as caught:
            topic.pipe_input("c", "1", 0)

    assert str(caught.value) == (
        "calm exceeded what its buffer may hold: 3 records (at most 2) and 96 bytes (no limit); give its BufferConfig "
        "room for what waits, or let it emit early (when_full=BufferFullStrategy.EMIT_EARLY), or suppress for a "
        "shorter time"
    )


def test_a_table_of_a_topic_is_kept_since_others_see_its_old_values() -> None:
    (part,) = plan(Suppressed.until_time_limit(5, BufferConfig(), name="calm")).subtopologies

    assert list(part.stores) == ["in-STATE-STORE-0000000000", "calm-store"]


def test_default_serdes_are_used_where_the_table_has_none() -> None:
    builder = StreamsBuilder()
    table: KTable[str, str] = builder.table("in", materialized=Materialized("tab", value_serde=Serdes.string()))
    table.map_values(lambda text: len(text)).suppress(Suppressed.until_time_limit(5, BufferConfig(), name="calm"))

    with pytest.raises(StreamsError, match="store 'calm-store' needs a value serde and none is set"):
        TopologyTestDriver(builder.build(), {"default.key.serde": Serdes.string()})


def final_counts_without_key_serde() -> StreamsBuilder:
    """Windowed keys, and the default serde, which writes text only, in the buffer of their suppression."""
    builder = StreamsBuilder()
    lines: KStream[str, str] = builder.stream("in")
    counts = lines.group_by_key().windowed_by(TimeWindows(10)).count()
    counts.suppress(Suppressed.until_window_closes(BufferConfig.UNBOUNDED)).to_stream().to("out")
    return builder


def pipe_two_windows(config: StreamsConfig) -> list[tuple[object, object]]:
    with TopologyTestDriver(final_counts_without_key_serde().build(), config) as driver:
        topic = driver.create_input_topic("in", Serdes.string(), Serdes.string())
        topic.pipe_input("a", "x", timestamp=1)
        topic.pipe_input("a", "x", timestamp=30)
        return [
            (record.key, record.value)
            for record in driver.create_output_topic("out", Serdes.bytes(), Serdes.bytes()).read_records()
        ]


def test_a_key_of_a_wrong_type_ends_the_flush_of_a_cache_with_node_and_serde() -> None:
    with pytest.raises(
        ProcessorStateError, match=r"KTABLE-SUPPRESS-\d+ failed .*StringSerde\(.*\) cannot write Windowed"
    ):
        pipe_two_windows(CONFIG.replace(statestore_cache_max_bytes=10_000))


@pytest.mark.parametrize("cache_bytes", [0, 10_000])
def test_a_key_of_a_wrong_type_is_for_the_processing_handler(cache_bytes: int) -> None:
    handler = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler}
    config = CONFIG.replace(statestore_cache_max_bytes=cache_bytes).replace(handler)

    assert pipe_two_windows(config) == []
