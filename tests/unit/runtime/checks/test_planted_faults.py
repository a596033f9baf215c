"""Faults that were planted in a topology, a cluster or a machine are found before the start, each with its cure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pykstreams import Grouped, KStream, Materialized, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.core.errors import ClusterError
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.checks.application_check import cluster_findings, local_findings
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.runtime.checks.machine_checks import disk_findings
from pykstreams.runtime.clients.admin import TopicSpec
from pykstreams.runtime.clients.inspection.cluster_facts import Allowed
from pykstreams.state.directory.disk_room import DiskRoom
from pykstreams.topology.key_placement import by_crc32

ALL = frozenset({"CREATE", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE"})
CHANGELOG = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
REPARTITION = {"cleanup.policy": "delete", "retention.ms": "-1"}


@dataclass
class Cluster:
    """A cluster on which the application below is content."""

    topics: dict[str, int] = field(
        default_factory=lambda: {
            "orders": 4,
            "customers": 4,
            "returns": 4,
            "bills": 4,
            "dead": 1,
            "shop-by-item-repartition": 4,
            "shop-counts-changelog": 4,
        }
    )
    settings: dict[str, dict[str, str]] = field(
        default_factory=lambda: {
            "shop-by-item-repartition": dict(REPARTITION),
            "shop-counts-changelog": dict(CHANGELOG),
        }
    )
    api: dict[int, int] = field(default_factory=lambda: {28: 5, 88: 0})
    rights: dict[str, frozenset[str]] = field(default_factory=dict)
    cluster_rights: frozenset[str] = ALL
    choose: Callable[[bytes, int], int] = partition_for_key
    """Where the producers of the topics put keys."""
    is_silent: bool = False
    bootstrap: str = "broker:9092"

    def partition_counts(self, expected: Collection[str] = ()) -> dict[str, int]:
        return dict(self.topics)

    def touch(self, topics: Iterable[str]) -> None:
        raise AssertionError("a check makes no topics")

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        raise AssertionError("a check makes no topics")

    def topic_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        return {name: self.settings.get(name, {}) for name in topics}

    def read_keys(self, topics: Mapping[str, int]) -> dict[TopicPartition, list[bytes | None]]:
        found: dict[TopicPartition, list[bytes | None]] = {}
        for topic, count in topics.items():
            for key in (str(number).encode() for number in range(100)):
                found.setdefault(TopicPartition(topic, self.choose(key, count)), []).append(key)
        return found

    def brokers(self) -> int:
        return 1

    def versions(self) -> dict[int, int]:
        return self.api

    def allowed(self, topics: Collection[str]) -> Allowed:
        if self.is_silent:
            raise ClusterError("asking what is allowed failed")
        return Allowed(self.cluster_rights, {topic: self.rights.get(topic, ALL) for topic in topics})


def check(cluster: Cluster, folder: Path, **settings: object) -> list[Finding]:
    """Checks an application that joins orders with customers and returns, counts them by item, and writes bills."""
    config = StreamsConfig(
        {
            "application.id": "shop",
            "bootstrap.servers": "broker:9092",
            "state.dir": str(folder),
            "default.key.serde": Serdes.string(),
            "default.value.serde": Serdes.string(),
            "errors.dead.letter.queue.topic.name": "dead",
            **settings,
        }
    )
    builder = StreamsBuilder()
    orders: KStream[str, str] = builder.stream("orders")
    orders.join(builder.table("customers"), lambda order, customer: order).to("bills")
    orders.merge(builder.stream("returns")).group_by(lambda key, value: value, Grouped(name="by-item")).count(
        materialized=Materialized("counts")
    )
    plan = builder.build({"topology.optimization": "reuse.ktable.source.topics"}).plan(config)
    return [
        one
        for one in (*local_findings(plan, config), *cluster_findings(plan, config, cluster, cluster, cluster.read_keys))
        if "temporary files" not in one.what
    ]


def without(*topics: str) -> Callable[[Cluster], None]:
    def plant(cluster: Cluster) -> None:
        for topic in topics:
            del cluster.topics[topic]

    return plant


def partitions(topic: str, count: int) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.topics.update({topic: count})


def setting(topic: str, key: str, value: str) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.settings[topic].update({key: value})


def rights(topic: str, *left: str) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.rights.update({topic: frozenset(left)})


def nothing(cluster: Cluster) -> None:
    """Leaves the cluster as it is."""


def no_creation(cluster: Cluster) -> None:
    del cluster.topics["shop-counts-changelog"]
    cluster.cluster_rights = ALL - {"CREATE"}


FAULTS: list[tuple[str, Callable[[Cluster], None], dict[str, object], str, str, str]] = [
    (
        "source topic is missing",
        without("returns"),
        {},
        "topics",
        "does not exist, which KSTREAM-SOURCE",
        "--topic returns",
    ),
    ("sink topic is missing", without("bills"), {}, "topics", "does not exist, which KSTREAM-SINK", "--topic bills"),
    ("dead-letter topic is missing", without("dead"), {}, "topics", "which errors.dead.letter", "--topic dead"),
    (
        "name was misspelt",
        lambda c: c.topics.update(bill=c.topics.pop("bills")),
        {},
        "topics",
        "",
        "did you mean 'bill'?",
    ),
    ("joined topics differ", partitions("customers", 6), {}, "topics", "orders, 4 partitions", "num_partitions=6"),
    (
        "repartition topic has old count",
        partitions("shop-by-item-repartition", 2),
        {},
        "topics",
        "has 2",
        "pykstreams reset",
    ),
    (
        "changelog has old count",
        partitions("shop-counts-changelog", 3),
        {},
        "topics",
        "3 partitions and needs 4",
        "reset",
    ),
    (
        "changelog is deleted in time",
        setting("shop-counts-changelog", "cleanup.policy", "delete"),
        {},
        "topics",
        "state would get lost",
        "compact",
    ),
    (
        "repartition topic is compacted",
        setting("shop-by-item-repartition", "cleanup.policy", "compact"),
        {},
        "topics",
        "is compacted",
        "kafka-configs.sh",
    ),
    (
        "repartition topic forgets",
        setting("shop-by-item-repartition", "retention.ms", "1000"),
        {},
        "topics",
        "keeps records for 1000 ms",
        "kafka-configs.sh",
    ),
    ("source may not be read", rights("orders", "DESCRIBE"), {}, "rights", "may not READ", "--acls"),
    ("sink may not be written", rights("bills", "DESCRIBE", "READ"), {}, "rights", "may not WRITE", "--acls"),
    (
        "changelog may not be written",
        rights("shop-counts-changelog", *(ALL - {"WRITE"})),
        {},
        "rights",
        "may not WRITE",
        "--acls",
    ),
    ("topics may not be created", no_creation, {}, "rights", "may not create topics", "pykstreams topics"),
    (
        "no streams groups",
        lambda c: c.api.clear(),
        {"group.protocol": "streams"},
        "brokers",
        "KIP-1071",
        "group.protocol=classic",
    ),
    (
        "no exactly-once",
        lambda c: c.api.update({28: 2}),
        {"processing.guarantee": "exactly_once_v2"},
        "brokers",
        "older than 2.5",
        "at_least_once",
    ),
    (
        "replication beyond brokers",
        nothing,
        {"replication.factor": 3},
        "settings",
        "there are 1 brokers",
        "replication.factor=1",
    ),
    (
        "value serdes are missing",
        nothing,
        {"default.value.serde": None},
        "serdes",
        "need a value serde",
        "default.value.serde",
    ),
    ("state folder is a file", nothing, {"state.dir": "FILE"}, "disk", "cannot be written", "state.dir"),
]


@pytest.mark.parametrize(
    ("plant", "settings", "name", "what", "cure"), [one[1:] for one in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_planted_fault_is_found_alone_and_with_its_cure(
    plant: Callable[[Cluster], None], settings: dict[str, object], name: str, what: str, cure: str, tmp_path: Path
) -> None:
    cluster = Cluster()
    plant(cluster)
    if settings.get("state.dir") == "FILE":
        (tmp_path / "file").touch()
        settings = {"state.dir": str(tmp_path / "file")}

    (found,) = check(cluster, tmp_path, **settings)

    assert (found.severity, found.check) == (Severity.ERROR, name)
    assert what in found.what
    assert cure in found.cure


def test_sound_application_has_no_findings(tmp_path: Path) -> None:
    assert check(Cluster(), tmp_path) == []


def test_all_faults_are_in_one_list(tmp_path: Path) -> None:
    cluster = Cluster()
    for plant in (without("bills"), partitions("customers", 6), rights("orders", "DESCRIBE")):
        plant(cluster)

    assert [one.check for one in check(cluster, tmp_path, **{"replication.factor": 3})] == [
        "topics",
        "topics",
        "settings",
        "rights",
    ]


def test_every_join_with_unequal_counts_is_named_at_once(tmp_path: Path) -> None:
    cluster = Cluster({"a": 1, "b": 2, "c": 3, "d": 4})
    config = StreamsConfig(
        {
            "application.id": "shop",
            "state.dir": str(tmp_path),
            "default.key.serde": Serdes.string(),
            "default.value.serde": Serdes.string(),
        }
    )
    builder = StreamsBuilder()
    for left, right in ("ab", "cd"):
        builder.stream(left).join(builder.table(right), lambda one, other: one).foreach(print)
    plan = builder.build().plan(config)

    found = [one for one in cluster_findings(plan, config, cluster, cluster) if one.check == "topics"]

    assert [("(a, 1" in one.what, "(c, 3" in one.what) for one in found] == [(True, False), (False, True)]


def test_question_that_fails_is_a_warning_and_the_others_are_asked(tmp_path: Path) -> None:
    found = check(Cluster(is_silent=True), tmp_path, **{"replication.factor": 3})

    assert [(one.severity, one.check) for one in found] == [(Severity.ERROR, "settings"), (Severity.WARNING, "rights")]


def test_keys_that_lie_elsewhere_are_a_warning_for_each_topic_with_the_cure(tmp_path: Path) -> None:
    found = check(Cluster(choose=by_crc32), tmp_path)

    assert [(one.severity, one.check, one.where) for one in found] == [
        (Severity.WARNING, "keys", "customers"),
        (Severity.WARNING, "keys", "orders"),
    ]
    assert all("of 100 sampled records lie in other partitions than Kafka's murmur2" in one.what for one in found)
    assert "records of orders that lie by Kafka's murmur2 do not meet them" in found[0].what
    assert '"partitioner": "murmur2_random"' in found[0].cure


def test_full_disk_is_found_before_the_start(tmp_path: Path) -> None:
    config = StreamsConfig(
        {
            "application.id": "shop",
            "state.dir": str(tmp_path),
            "default.key.serde": Serdes.string(),
            "default.value.serde": Serdes.string(),
        }
    )
    builder = StreamsBuilder()
    builder.stream("orders").group_by_key().count()
    plan: Any = builder.build().plan(config)

    full, temporary = disk_findings(plan, config, lambda _: DiskRoom(5, 10))

    assert (full.severity, "5 bytes left" in full.what) == (Severity.ERROR, True)
    assert temporary.severity is Severity.WARNING
