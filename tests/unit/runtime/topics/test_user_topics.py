"""Topics that users make are looked for before the first record, and all that are missing are named at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from pykstreams.core.errors import MissingSinkTopicError, MissingSourceTopicError
from pykstreams.runtime.topics.user_topics import UserTopics
from pykstreams.topology.plan import TopologyPlan
from tests.unit.runtime.plans import global_store, part, plan, sink, source


@dataclass
class FakeUserTopics:
    """Topics; a cluster that makes them by itself needs some looks before they appear."""

    topics: set[str]
    makes_after: int | None = None
    bootstrap: str = "broker:9092"
    asked_for: list[str] = field(default_factory=list)

    def partition_counts(self) -> dict[str, int]:
        return dict.fromkeys(self.topics, 1)

    def touch(self, topics: Iterable[str]) -> None:
        self.asked_for += topics
        if self.makes_after is not None:
            self.makes_after -= 1
            if self.makes_after <= 0:
                self.topics.update(topics)


def check(topology: TopologyPlan, cluster: FakeUserTopics, *, dead_letters: str | None = None) -> None:
    UserTopics(cluster, topology, dead_letters=dead_letters, patience_s=0).check()


def bills() -> TopologyPlan:
    """Reads orders and a repartition topic, writes bills and the repartition topic."""
    return plan(
        part(0, source("A", "orders"), sink("B", "shop-x-repartition")),
        part(1, source("C", "shop-x-repartition"), sink("D", "bills"), repartition=[("shop-x-repartition", None)]),
    )


def test_topics_that_the_application_makes_itself_may_be_missing() -> None:
    check(bills(), FakeUserTopics({"orders", "bills"}))


def test_missing_sink_topic_is_named_with_its_writer_and_the_cure() -> None:
    cluster = FakeUserTopics({"orders", "bill"})

    with pytest.raises(MissingSinkTopicError) as raised:
        check(bills(), cluster)

    assert str(raised.value) == (
        "topic 'bills', which D writes, does not exist on broker:9092 (did you mean 'bill'?); correct its name in the "
        "topology, or create it, for instance with\n"
        "kafka-topics.sh --bootstrap-server broker:9092 --create --topic bills --partitions 4\n"
        "(pykstreams topics TOPOLOGY --create --bootstrap-servers broker:9092, with the same --config and --set, "
        "creates every topic that is missing)"
    )
    assert cluster.asked_for == ["bills"]


def test_missing_topic_of_dead_letters_is_named_with_its_setting() -> None:
    with pytest.raises(MissingSinkTopicError) as raised:
        check(bills(), FakeUserTopics({"orders", "bills"}), dead_letters="lost")

    assert str(raised.value) == (
        "topic 'lost', which errors.dead.letter.queue.topic.name gives for dead letters, does not exist on "
        "broker:9092; correct its name in the settings, or create it, for instance with\n"
        "kafka-topics.sh --bootstrap-server broker:9092 --create --topic lost --partitions 4\n"
        "(pykstreams topics TOPOLOGY --create --bootstrap-servers broker:9092, with the same --config and --set, "
        "creates every topic that is missing)"
    )


def test_all_topics_that_are_missing_are_named_at_once() -> None:
    topology = plan(
        part(0, source("A", "orders", "returns"), sink("B", "bills"), sink("C", "bills")),
        global_stores=[global_store("rows", "names")],
    )
    cluster = FakeUserTopics({"order", "x"}, makes_after=1)

    with pytest.raises(MissingSourceTopicError) as raised:
        check(topology, cluster, dead_letters="lost")

    assert str(raised.value) == (
        "5 topics do not exist on broker:9092; correct their names, or create them, for instance as below:\n"
        "- 'bills', which B writes\n"
        "- 'lost', which errors.dead.letter.queue.topic.name gives for dead letters\n"
        "- 'names', which global store 'rows' reads\n"
        "- 'orders', which A reads (did you mean 'order'?)\n"
        "- 'returns', which A reads\n"
        "kafka-topics.sh --bootstrap-server broker:9092 --create --topic bills --partitions 4\n"
        "kafka-topics.sh --bootstrap-server broker:9092 --create --topic lost --partitions 4\n"
        "kafka-topics.sh --bootstrap-server broker:9092 --create --topic names --partitions 4\n"
        "kafka-topics.sh --bootstrap-server broker:9092 --create --topic orders --partitions 4\n"
        "kafka-topics.sh --bootstrap-server broker:9092 --create --topic returns --partitions 4\n"
        "(pykstreams topics TOPOLOGY --create --bootstrap-servers broker:9092, with the same --config and --set, "
        "creates every topic that is missing)"
    )
    assert cluster.asked_for == []


def test_the_command_makes_a_topic_like_those_that_are_read_with_it() -> None:
    topology = plan(part(0, source("A", "orders", "returns"), sink("B", "bills")))

    with pytest.raises(MissingSourceTopicError, match=r"--create --topic returns --partitions 12\n"):
        UserTopics(FakeUserTopics(set()), topology).check_sources({"orders": 12, "bills": 12, "other": 50})


def test_brokers_that_create_topics_by_themselves_are_asked_for_them_and_waited_for() -> None:
    cluster = FakeUserTopics({"orders"}, makes_after=2)

    UserTopics(cluster, bills(), dead_letters="lost").check()

    assert cluster.topics == {"orders", "bills", "lost"}
    assert cluster.asked_for == ["bills", "lost"] * 2


def test_missing_sources_are_an_error_later_too_and_missing_sinks_are_not() -> None:
    topics = UserTopics(FakeUserTopics(set()), bills())

    topics.check_sources({"orders": 1})
    with pytest.raises(MissingSourceTopicError, match=r"^topic 'orders', which A reads, does not exist"):
        topics.check_sources({"bills": 1})
