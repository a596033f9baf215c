"""Topics are checked, counted as Kafka Streams counts them, and created before the first task starts."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from pykstreams import Materialized, StreamsBuilder, StreamsConfig, TimeWindows
from pykstreams.core.errors import (
    ClusterError,
    MisconfiguredInternalTopicError,
    MissingInternalTopicsError,
    MissingSourceTopicError,
    TaskAssignmentError,
    TopologyError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.admin import TopicSpec
from pykstreams.runtime.topics.topic_admin import TopicAdmin, TopicLayout
from pykstreams.topology.plan import InternalTopic, TopologyPlan
from tests.unit.runtime.plans import global_store, part, plan, sink, source

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
COMPACTED = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


@dataclass
class FakeTopics:
    """A cluster as far as topics go."""

    topics: dict[str, int]
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    bootstrap: str = "broker:9092"
    created: dict[str, TopicSpec] = field(default_factory=dict)
    denies_settings: bool = False
    expected: Collection[str] = ()
    """The topics that were asked for with patience, the last time."""

    def partition_counts(self, expected: Collection[str] = ()) -> dict[str, int]:
        self.expected = expected
        return dict(self.topics)

    def touch(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self.topics.setdefault(topic, 4)

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        for topic in topics:
            self.created[topic.name] = topic
            self.topics[topic.name] = topic.partitions
            self.settings[topic.name] = dict(topic.config)

    def topic_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        if self.denies_settings:
            raise ClusterError("reading the settings of topic 'x' failed: not authorized")
        return {name: self.settings.get(name, {}) for name in topics}


def prepare(
    topology: TopologyPlan,
    cluster: FakeTopics,
    *,
    embedded: bool = False,
) -> TopicLayout:
    return TopicAdmin(cluster, topology, replication=-1, embedded=embedded).prepare()


def changelog(name: str = "shop-counts-changelog", **config: str) -> InternalTopic:
    return InternalTopic(name, "changelog", None, config or COMPACTED)


def rekeyed(count: int | None = None) -> TopologyPlan:
    """Two sub-topologies with a repartition topic between them."""
    first = part(0, source("KSTREAM-SOURCE-0", "orders", "returns"), sink("SINK", "shop-by-item-repartition"))
    second = part(
        1,
        source("KSTREAM-SOURCE-1", "shop-by-item-repartition"),
        repartition=[("shop-by-item-repartition", count)],
        changelogs={"counts": changelog()},
    )
    return plan(first, second)


def test_missing_source_topic_is_named_with_its_reader_and_the_cure() -> None:
    with pytest.raises(MissingSourceTopicError) as raised:
        prepare(plan(part(0, source("KSTREAM-SOURCE-0", "order"))), FakeTopics({"orders": 2, "x": 1}))

    assert str(raised.value) == (
        "topic 'order', which KSTREAM-SOURCE-0 reads, does not exist on broker:9092 (did you mean 'orders'?); correct "
        "its name in the topology, or create it, for instance with\n"
        "kafka-topics.sh --bootstrap-server broker:9092 --create --topic order --partitions 4\n"
        "(pykstreams topics TOPOLOGY --create --bootstrap-servers broker:9092, with the same --config and --set, "
        "creates every topic that is missing)"
    )


def test_topics_that_were_deleted_after_they_were_prepared_are_told_and_not_made_anew() -> None:
    """An empty changelog under stores that go on would be incomplete for ever."""
    cluster = FakeTopics({"orders": 3, "returns": 5})
    topics = TopicAdmin(cluster, rekeyed(), replication=-1, embedded=False)
    topics.prepare()
    topics.check()
    del cluster.topics["shop-counts-changelog"]

    for ask in (topics.check, topics.prepare):
        with pytest.raises(
            MissingInternalTopicsError, match=r"\['shop-counts-changelog'\] were deleted on broker:9092"
        ):
            ask()
    assert "shop-counts-changelog" not in cluster.topics


def test_topics_that_were_there_are_waited_for_when_topics_are_prepared_again() -> None:
    """Another broker may not know yet of those that were just made, and one that has just started of none."""
    cluster = FakeTopics({"orders": 3, "returns": 5, "others": 1})
    topics = TopicAdmin(cluster, rekeyed(), replication=-1, embedded=False)
    topics.prepare()
    assert cluster.expected == frozenset()

    topics.prepare()

    assert cluster.expected == {"orders", "returns", "shop-by-item-repartition", "shop-counts-changelog"}


def test_topics_that_match_a_pattern_and_those_of_global_stores_are_waited_for_like_others_that_are_read() -> None:
    cluster = FakeTopics({"orders-1": 3, "orders-2": 3, "rates": 1})
    topology = plan(part(0, source("A", pattern="orders-.*")), global_stores=[global_store("rows", "rates")])
    topics = TopicAdmin(cluster, topology, replication=-1, embedded=False)
    topics.prepare()

    topics.prepare()

    assert cluster.expected == {"orders-1", "orders-2", "rates"}


def test_source_topic_that_was_deleted_is_told() -> None:
    cluster = FakeTopics({"orders": 3, "returns": 5})
    topics = TopicAdmin(cluster, rekeyed(), replication=-1, embedded=False)
    topics.prepare()
    del cluster.topics["returns"]

    with pytest.raises(MissingSourceTopicError, match="topic 'returns', which KSTREAM-SOURCE-0 reads, does not exist"):
        topics.check()


def test_repartition_topic_takes_the_most_partitions_upstream() -> None:
    cluster = FakeTopics({"orders": 3, "returns": 5})

    layout = prepare(rekeyed(), cluster)

    assert layout.partitions["shop-by-item-repartition"] == 5
    assert cluster.created["shop-by-item-repartition"].config["retention.ms"] == "-1"


def test_repartition_topic_takes_the_number_the_user_gave() -> None:
    assert prepare(rekeyed(7), FakeTopics({"orders": 3, "returns": 5})).partitions["shop-by-item-repartition"] == 7


def test_changelog_has_one_partition_per_task() -> None:
    cluster = FakeTopics({"orders": 3, "returns": 5})

    prepare(rekeyed(11), cluster)

    assert {name: spec.partitions for name, spec in cluster.created.items()} == {
        "shop-by-item-repartition": 11,
        "shop-counts-changelog": 11,
    }


def test_task_reads_its_partition_number_of_every_source_that_has_it() -> None:
    layout = prepare(rekeyed(), FakeTopics({"orders": 1, "returns": 2}))

    assert layout.inputs[TaskId(0, 0)] == {TopicPartition("orders", 0), TopicPartition("returns", 0)}
    assert layout.inputs[TaskId(0, 1)] == {TopicPartition("returns", 1)}


def test_chained_repartition_topics_are_counted_from_the_front() -> None:
    topology = plan(
        part(
            1,
            source("B", "shop-a-repartition"),
            sink("S", "shop-b-repartition"),
            repartition=[("shop-a-repartition", None)],
        ),
        part(2, source("C", "shop-b-repartition"), repartition=[("shop-b-repartition", None)]),
        part(0, source("A", "orders"), sink("S", "shop-a-repartition")),
    )

    counts = prepare(topology, FakeTopics({"orders": 6})).partitions

    assert (counts["shop-a-repartition"], counts["shop-b-repartition"]) == (6, 6)


def test_repartition_topic_that_is_joined_takes_the_number_of_its_partner() -> None:
    topology = plan(
        part(0, source("A", "orders"), sink("S", "shop-a-repartition")),
        part(
            1,
            source("B", "shop-a-repartition"),
            source("C", "customers"),
            repartition=[("shop-a-repartition", None)],
            copartition=[("shop-a-repartition", "customers")],
        ),
    )

    assert prepare(topology, FakeTopics({"orders": 6, "customers": 2})).partitions["shop-a-repartition"] == 2


def test_unequal_partition_counts_name_both_topics_both_counts_and_the_cure() -> None:
    topology = plan(
        part(
            0,
            source("KSTREAM-SOURCE-0000000000", "orders"),
            source("KTABLE-SOURCE-0000000003", "customers"),
            copartition=[("orders", "customers")],
        )
    )

    with pytest.raises(TopologyError) as raised:
        prepare(topology, FakeTopics({"orders": 6, "customers": 4}))

    assert str(raised.value) == (
        "Invalid topology: KSTREAM-SOURCE-0000000000 (orders, 6 partitions) and KTABLE-SOURCE-0000000003 "
        "(customers, 4 partitions) are joined or merged by key and need equal partition counts; call "
        ".repartition(Repartitioned(num_partitions=4)) on the stream of 'orders', or recreate 'customers' with 6 "
        "partitions"
    )


def test_existing_internal_topic_with_other_partitions_is_refused() -> None:
    with pytest.raises(MisconfiguredInternalTopicError) as raised:
        prepare(rekeyed(), FakeTopics({"orders": 3, "returns": 5, "shop-counts-changelog": 3}))

    assert str(raised.value) == (
        "changelog topic 'shop-counts-changelog' has 3 partitions and needs 5: the partitions of a source topic were "
        "changed, or somebody else created it. Kafka takes no partitions away; stop all workers and reset the "
        "application (pykstreams reset), so that the topic is made anew, or start with another application.id; or copy "
        "the source into a new topic with the number of partitions that it had, and read that one"
    )


@pytest.mark.parametrize(
    ("topic", "settings", "fault", "cure"),
    [
        (
            "shop-counts-changelog",
            {"cleanup.policy": "delete"},
            "deletes old records (cleanup.policy='delete')",
            "cleanup.policy=compact",
        ),
        (
            "shop-by-item-repartition",
            {"cleanup.policy": "compact"},
            "is compacted (cleanup.policy='compact')",
            "cleanup.policy=delete",
        ),
        (
            "shop-by-item-repartition",
            {"cleanup.policy": "delete", "retention.ms": "604800000"},
            "keeps records for 604800000 ms (retention.ms) and must keep them for -1 ms",
            "retention.ms=-1",
        ),
    ],
)
def test_existing_internal_topic_that_loses_records_is_refused(
    topic: str, settings: dict[str, str], fault: str, cure: str
) -> None:
    cluster = FakeTopics({"orders": 5, "returns": 5, topic: 5}, {topic: settings})

    with pytest.raises(MisconfiguredInternalTopicError) as raised:
        prepare(rekeyed(), cluster)

    assert f"topic {topic!r} {fault}" in str(raised.value)
    assert str(raised.value).endswith(
        f"; kafka-configs.sh --bootstrap-server {cluster.bootstrap} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {cure} changes it"
    )


def windows_kept(minutes: int, **changelog_config: str) -> TopologyPlan:
    """Windows that are kept for so many minutes; their changelog topic is to keep them for a day longer."""
    settings = StreamsConfig({"application.id": "shop"})
    builder = StreamsBuilder(settings)
    windows = TimeWindows(timedelta(minutes=1), grace=timedelta(minutes=minutes - 1))
    kept: Materialized[str, int] = Materialized("clicks", topic_config=changelog_config)
    builder.stream("clicks", str, str).group_by_key().windowed_by(windows).count(materialized=kept)
    return builder.build(settings).plan(settings)


def with_retention_of(ms: int) -> FakeTopics:
    settings = {"cleanup.policy": "compact,delete", "retention.ms": str(ms)}
    return FakeTopics({"clicks": 1, "shop-clicks-changelog": 1}, {"shop-clicks-changelog": settings})


def test_changelog_that_was_made_for_a_shorter_retention_will_do_and_the_log_says_how_far_stream_time_may_be_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    of_ten_minutes = DAY_MS + 10 * MINUTE_MS

    with caplog.at_level(logging.WARNING):
        prepare(windows_kept(30), with_retention_of(of_ten_minutes))

    (said,) = [record.getMessage() for record in caplog.records]
    assert said == (
        f"changelog topic 'shop-clicks-changelog' keeps records for {of_ten_minutes} ms (retention.ms), and one that "
        f"is made now for {DAY_MS + 30 * MINUTE_MS} ms: its store is restored as a whole while stream time is less "
        f"than {of_ten_minutes - 30 * MINUTE_MS} ms behind the clock; for more: kafka-configs.sh --bootstrap-server "
        "broker:9092 --alter --entity-type topics --entity-name shop-clicks-changelog --add-config "
        f"retention.ms={DAY_MS + 30 * MINUTE_MS}"
    )


@pytest.mark.parametrize("config", [{}, {"retention.ms": "-1"}])
def test_changelog_that_keeps_less_than_its_store_is_refused(config: dict[str, str]) -> None:
    with pytest.raises(MisconfiguredInternalTopicError, match=r"keeps records for 1799999 ms .* must keep them for"):
        prepare(windows_kept(30, **config), with_retention_of(30 * MINUTE_MS - 1))


def test_changelog_whose_own_retention_is_below_that_of_its_store_needs_no_more() -> None:
    prepare(windows_kept(30, **{"retention.ms": "5000"}), with_retention_of(5000))


def test_existing_changelog_that_is_compacted_too_early_is_refused() -> None:
    log = changelog(**{"cleanup.policy": "compact", "min.compaction.lag.ms": "1000"})
    topology = plan(part(0, source("A", "orders"), changelogs={"v": log}))
    cluster = FakeTopics(
        {"orders": 1, log.name: 1}, {log.name: {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}}
    )

    with pytest.raises(MisconfiguredInternalTopicError, match=r"compacts after 0 ms .* must wait for 1000 ms"):
        prepare(topology, cluster)


def optimized() -> TopologyPlan:
    """A table whose topic is its changelog, too."""
    settings = StreamsConfig({"application.id": "shop", "topology.optimization": "all"})
    builder = StreamsBuilder(settings)
    builder.table("prices", materialized=Materialized("kept"))
    return builder.build(settings).plan(settings)


def test_a_topic_that_is_the_changelog_of_its_table_may_delete_records_and_the_log_says_what_that_means(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = FakeTopics({"prices": 3}, {"prices": {"cleanup.policy": "delete", "retention.ms": "604800000"}})

    with caplog.at_level(logging.WARNING):
        layout = prepare(optimized(), cluster)

    assert layout.partitions["prices"] == 3
    assert "prices" not in cluster.created
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == (
        "topic 'prices', from which a store is restored, deletes old records (cleanup.policy='delete'), so state "
        f"would get lost: use kafka-configs.sh --bootstrap-server {cluster.bootstrap} --alter --entity-type topics "
        "--entity-name prices --add-config cleanup.policy=compact, or give the store a changelog of its own by leaving "
        "reuse.ktable.source.topics out of topology.optimization"
    )


def test_a_compacted_topic_that_is_the_changelog_of_its_table_needs_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        prepare(optimized(), FakeTopics({"prices": 3}, {"prices": {"cleanup.policy": "compact"}}))

    assert caplog.records == []


def test_a_missing_topic_that_is_the_changelog_of_its_table_is_a_missing_source_topic() -> None:
    with pytest.raises(MissingSourceTopicError, match=r"topic 'prices', which KSTREAM-SOURCE-\d+ reads, does not"):
        prepare(optimized(), FakeTopics({"orders": 3}))


def test_settings_that_may_not_be_read_are_not_checked_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = FakeTopics({"orders": 5, "returns": 5, "shop-counts-changelog": 5}, denies_settings=True)

    with caplog.at_level(logging.WARNING):
        prepare(rekeyed(), cluster)

    assert "the settings of internal topics were not checked" in caplog.text


def test_second_preparation_changes_nothing() -> None:
    cluster = FakeTopics({"orders": 3, "returns": 5})
    first = prepare(rekeyed(), cluster)
    cluster.created.clear()

    assert prepare(rekeyed(), cluster) == first
    assert cluster.created == {}


def test_tasks_grow_with_the_sources() -> None:
    topology = plan(part(0, source("A", "orders")))
    cluster = FakeTopics({"orders": 2})
    prepare(topology, cluster)
    cluster.topics["orders"] = 9

    layout = prepare(topology, cluster)

    assert set(layout.inputs) == {TaskId(0, number) for number in range(9)}


def test_pattern_reads_the_topics_that_match_now_but_none_of_its_own() -> None:
    topology = plan(
        part(
            0,
            source("A", pattern=".*s.*"),
            changelogs={"s": changelog("shop-s-changelog")},
        )
    )
    cluster = FakeTopics({"orders": 2, "sales": 1, "tax": 1, "__consumer_offsets": 50})

    first = prepare(topology, cluster)
    cluster.topics["news"] = 2
    second = prepare(topology, cluster)

    assert {place.topic for place in first.inputs[TaskId(0, 0)]} == {"orders", "sales"}
    assert {place.topic for place in second.inputs[TaskId(0, 0)]} == {"orders", "sales", "news"}


@pytest.mark.parametrize("numbers", [(0, 1), (0, 0)], ids=["two sub-topologies", "one sub-topology"])
def test_topic_that_two_patterns_match_is_refused(numbers: tuple[int, int]) -> None:
    sources = [source("FIRST", pattern="ord.*"), source("SECOND", pattern=".*ers")]
    parts = [part(0, *sources)] if numbers == (0, 0) else [part(i, one) for i, one in enumerate(sources)]

    with pytest.raises(TopologyError) as raised:
        prepare(plan(*parts), FakeTopics({"orders": 2, "ordinals": 2, "papers": 2}))

    assert str(raised.value) == (
        "Invalid topology: topic 'orders' matches the patterns 'ord.*' of source FIRST and '.*ers' of source SECOND; a "
        "topic is read by one source, so narrow one of the two"
    )


def test_pattern_without_any_topic_has_no_tasks() -> None:
    cluster = FakeTopics({})

    layout = prepare(plan(part(0, source("A", pattern="none-.*"))), cluster)

    assert layout.inputs == {}
    assert cluster.created == {}


def test_repartition_topic_behind_a_pattern_without_topics_cannot_be_counted() -> None:
    topology = plan(
        part(0, source("A", pattern="none-.*"), sink("S", "shop-a-repartition")),
        part(1, source("B", "shop-a-repartition"), repartition=[("shop-a-repartition", None)]),
    )

    with pytest.raises(TaskAssignmentError) as raised:
        prepare(topology, FakeTopics({}))

    assert str(raised.value) == (
        "the partitions of repartition topics ['shop-a-repartition'] cannot be worked out, because "
        "nothing that is "
        "read upstream exists; create at least one topic that matches the pattern of the source, "
        "or give the number "
        "with Repartitioned(num_partitions=...)"
    )


def test_topics_of_an_embedded_cluster_appear_and_nothing_is_created() -> None:
    cluster = FakeTopics({})

    layout = prepare(rekeyed(), cluster, embedded=True)

    assert cluster.created == {}
    assert set(layout.partitions.values()) == {4}
    assert cluster.topics.keys() == layout.partitions.keys()


def test_embedded_cluster_refuses_another_number_of_partitions() -> None:
    with pytest.raises(TopologyError) as raised:
        prepare(rekeyed(6), FakeTopics({}), embedded=True)

    assert str(raised.value) == (
        "Invalid topology: repartition topic 'shop-by-item-repartition' asks for 6 partitions, and "
        "an embedded "
        "cluster has 4 in every topic; leave the number out, or use a real cluster"
    )


def test_topics_of_global_stores_have_partitions_and_no_tasks() -> None:
    topology = plan(part(0, source("S", "orders")), global_stores=[global_store("rows", "names")])
    layout = prepare(topology, FakeTopics({"orders": 1, "names": 7}))

    assert layout.partitions["names"] == 7
    assert layout.inputs == {TaskId(0, 0): frozenset({TopicPartition("orders", 0)})}


def test_missing_topic_of_a_global_store_is_an_error_before_the_start() -> None:
    topology = plan(part(0, source("S", "orders")), global_stores=[global_store("rows", "names")])

    with pytest.raises(
        MissingSourceTopicError,
        match=r"^topic 'names', which global store 'rows' reads, does not exist on .* \(did you mean 'name'\?\)",
    ):
        prepare(topology, FakeTopics({"orders": 1, "name": 1}))


def test_topics_of_global_stores_appear_on_an_embedded_cluster() -> None:
    topology = plan(part(0, source("S", "orders")), global_stores=[global_store("rows", "names")])

    assert prepare(topology, FakeTopics({}), embedded=True).partitions == {"orders": 4, "names": 4}


def test_one_partition_is_told_as_one() -> None:
    with pytest.raises(MisconfiguredInternalTopicError, match="has 1 partition and needs 5: "):
        prepare(rekeyed(), FakeTopics({"orders": 3, "returns": 5, "shop-counts-changelog": 1}))
