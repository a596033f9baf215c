"""Faults that were planted in a topology, a cluster or a machine are found before the start, each with its cure."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pykstreams import Grouped, KStream, Materialized, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.assignment import StickyTaskAssignor
from pykstreams.core.errors import ClusterError
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.checks.application_check import cluster_findings, local_findings
from pykstreams.runtime.checks.clock_checks import TOLERANCE_MS, clock_findings
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.runtime.checks.machine_checks import disk_findings
from pykstreams.runtime.clients.admin import TopicSpec
from pykstreams.runtime.clients.inspection.broker_requests import Protocols
from pykstreams.runtime.clients.inspection.cluster_facts import Allowed, ClockReading
from pykstreams.state.directory.disk_room import DiskRoom
from pykstreams.topology.placement.key_placement import by_crc32

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
    old_api: dict[int, int] | None = None
    """That of a second broker, which has not been upgraded."""
    features: dict[str, int] = field(default_factory=lambda: {"streams.version": 1})
    broker_settings: dict[str, str] = field(
        default_factory=lambda: {
            "group.min.session.timeout.ms": "6000",
            "group.max.session.timeout.ms": "1800000",
            "transaction.max.timeout.ms": "900000",
            "min.insync.replicas": "1",
            "default.replication.factor": "1",
        }
    )
    clock: ClockReading | None = field(default_factory=lambda: ClockReading(1_000_000, 1_000_004, 1_000_009))
    group: frozenset[str] = frozenset({"DESCRIBE", "READ"})
    takes_transactions: bool = True
    rights: dict[str, frozenset[str]] = field(default_factory=dict)
    cluster_rights: frozenset[str] = ALL
    choose: Callable[[bytes, int], int] = partition_for_key
    """Where the producers of the topics put keys."""
    keyed_topics: Collection[str] | None = None
    """Those whose producers do so, all of them by default; the others put keys where murmur2 does."""
    room: DiskRoom = field(default_factory=lambda: DiskRoom(10, 5))
    """On the disk of this machine."""
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
            is_keyed = self.keyed_topics is None or topic in self.keyed_topics
            choose = self.choose if is_keyed else partition_for_key
            for key in (str(number).encode() for number in range(100)):
                found.setdefault(TopicPartition(topic, choose(key, count)), []).append(key)
        return found

    def brokers(self) -> list[int]:
        return [1] if self.old_api is None else [1, 2]

    def protocols(self) -> dict[int, Protocols]:
        found = {1: Protocols(self.api, self.features)}
        return found if self.old_api is None else {**found, 2: Protocols(self.old_api)}

    def limits(self) -> dict[str, str]:
        return self.broker_settings

    def controller_clock(self) -> ClockReading | None:
        return self.clock

    def group_rights(self) -> frozenset[str]:
        return self.group

    def may_write_transactions(self, transactional_id: str) -> bool:
        assert transactional_id.startswith("shop-")  # as the rights of an application's ids are given
        return self.takes_transactions

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
        for one in (
            *local_findings(plan, config, lambda _: cluster.room),
            *cluster_findings(plan, config, cluster, cluster, cluster.read_keys),
        )
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


@dataclass(frozen=True)
class Fault:
    """A fault, how it is planted, and what must be told of it."""

    name: str
    plant: Callable[[Cluster], None] = nothing
    settings: Mapping[str, object] = field(default_factory=dict)
    check: str = ""
    what: str = ""
    cure: str = ""
    severity: Severity = Severity.ERROR


def changed(**attributes: object) -> Callable[[Cluster], None]:
    def plant(cluster: Cluster) -> None:
        for name, value in attributes.items():
            setattr(cluster, name, value)

    return plant


def limit(key: str, value: str) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.broker_settings.update({key: value})


def few_replicas(cluster: Cluster) -> None:
    del cluster.topics["shop-counts-changelog"]
    cluster.broker_settings["min.insync.replicas"] = "2"


EXACTLY_ONCE: Mapping[str, object] = {"processing.guarantee": "exactly_once_v2"}
STREAMS: Mapping[str, object] = {"group.protocol": "streams"}
OF_LEADERS: Mapping[str, object] = {
    "acceptable.recovery.lag": 1,
    "max.warmup.replicas": 3,
    "probing.rebalance.interval.ms": 60_000,
    "rack.aware.assignment.non_overlap_cost": 1,
    "rack.aware.assignment.strategy": "min_traffic",
    "rack.aware.assignment.tags": "zone",
    "rack.aware.assignment.traffic_cost": 1,
    "task.assignor.class": StickyTaskAssignor,
}
"""Settings by which the leader of a classic group shares out tasks, with other values than their defaults."""
FAULTS = [
    Fault(
        "source topic is missing",
        without("returns"),
        check="topics",
        what="does not exist, which KSTREAM-SOURCE",
        cure="--topic returns",
    ),
    Fault(
        "sink topic is missing",
        without("bills"),
        check="topics",
        what="does not exist, which KSTREAM-SINK",
        cure="--topic bills",
    ),
    Fault(
        "dead-letter topic is missing",
        without("dead"),
        check="topics",
        what="which errors.dead.letter",
        cure="--topic dead",
    ),
    Fault(
        "name was misspelt",
        lambda c: c.topics.update(bill=c.topics.pop("bills")),
        check="topics",
        cure="did you mean 'bill'? Correct the name, or create it:\n    kafka-topics.sh",
    ),
    Fault(
        "joined topics differ",
        partitions("customers", 6),
        check="topics",
        what="orders, 4 partitions",
        cure="num_partitions=6",
    ),
    Fault(
        "repartition topic has old count",
        partitions("shop-by-item-repartition", 2),
        check="topics",
        what="has 2",
        cure="pykstreams reset",
    ),
    Fault(
        "changelog has old count",
        partitions("shop-counts-changelog", 3),
        check="topics",
        what="3 partitions and needs 4",
        cure="reset",
    ),
    Fault(
        "changelog is deleted in time",
        setting("shop-counts-changelog", "cleanup.policy", "delete"),
        check="topics",
        what="state would get lost",
        cure="compact",
    ),
    Fault(
        "repartition topic is compacted",
        setting("shop-by-item-repartition", "cleanup.policy", "compact"),
        check="topics",
        what="is compacted",
        cure="kafka-configs.sh",
    ),
    Fault(
        "repartition topic forgets",
        setting("shop-by-item-repartition", "retention.ms", "1000"),
        check="topics",
        what="keeps records for 1000 ms",
        cure="kafka-configs.sh",
    ),
    Fault(
        "source may not be read",
        rights("orders", "DESCRIBE"),
        check="rights",
        what="may not READ",
        cure="--acls",
    ),
    Fault(
        "sink may not be written",
        rights("bills", "DESCRIBE", "READ"),
        check="rights",
        what="may not WRITE",
        cure="--acls",
    ),
    Fault(
        "changelog may not be written",
        rights("shop-counts-changelog", *(ALL - {"WRITE"})),
        check="rights",
        what="may not WRITE",
        cure="--acls",
    ),
    Fault(
        "topics may not be created",
        no_creation,
        check="rights",
        what="may not create topics",
        cure="pykstreams topics",
    ),
    Fault(
        "group may not be joined",
        changed(group=frozenset({"DESCRIBE"})),
        check="rights",
        what="may not READ the group",
        cure="--acls",
    ),
    *(
        Fault(
            f"{name} in a streams group",
            settings={**STREAMS, "client.tag.zone": "a", name: value},
            check="settings",
            what="has no effect with group.protocol=streams",
            cure="group.protocol=classic",
            severity=Severity.WARNING,
        )
        for name, value in OF_LEADERS.items()
    ),
    Fault(
        "num.standby.replicas in a streams group",
        settings={**STREAMS, "num.standby.replicas": 2},
        check="settings",
        what="has no effect with group.protocol=streams",
        cure="--entity-name shop --add-config streams.num.standby.replicas=2",
        severity=Severity.WARNING,
    ),
    Fault(
        "transactions are refused",
        changed(takes_transactions=False),
        EXACTLY_ONCE,
        check="rights",
        what="may not WRITE under transactional ids",
        cure="processing.guarantee=at_least_once",
    ),
    Fault(
        "no streams groups",
        changed(api={28: 5}),
        STREAMS,
        check="brokers",
        what="KIP-1071",
        cure="group.protocol=classic",
    ),
    Fault(
        "one broker is not upgraded",
        changed(old_api={28: 5}),
        STREAMS,
        check="brokers",
        what="broker 2 is without streams groups",
        cure="upgrade the brokers",
    ),
    Fault(
        "streams groups are switched off",
        changed(features={"streams.version": 0}),
        STREAMS,
        check="brokers",
        what="streams.version is switched off",
        cure="kafka-features.sh upgrade --feature streams.version=1",
    ),
    Fault(
        "no exactly-once",
        lambda c: c.api.update({28: 2}),
        EXACTLY_ONCE,
        check="brokers",
        what="older than 2.5",
        cure="at_least_once",
    ),
    Fault(
        "replication beyond brokers",
        settings={"replication.factor": 3},
        check="settings",
        what="there are 1 brokers",
        cure="replication.factor=1",
    ),
    Fault(
        "replicas that cannot be in sync",
        few_replicas,
        check="settings",
        what="gives shop-counts-changelog 1 replicas when they are created, and the brokers take no record before 2",
        cure="replication.factor=2",
    ),
    Fault(
        "session shorter than brokers allow",
        limit("group.min.session.timeout.ms", "10000"),
        check="settings",
        what="no member with less than 10000",
        cure="consumer.session.timeout.ms",
    ),
    Fault(
        "transactions longer than brokers allow",
        limit("transaction.max.timeout.ms", "1000"),
        EXACTLY_ONCE,
        check="settings",
        what="no producer with more than 1000 ms",
        cure="producer.transaction.timeout.ms to 1000",
    ),
    Fault(
        "value serdes are missing",
        settings={"default.value.serde": None},
        check="serdes",
        what="need a value serde",
        cure="default.value.serde",
    ),
    Fault(
        "state folder is a file",
        settings={"state.dir": "FILE"},
        check="disk",
        what="cannot be written",
        cure="state.dir",
    ),
    Fault("disk is full", changed(room=DiskRoom(5, 10)), check="disk", what="5 bytes left", cure="make room"),
    Fault(
        "clock is ahead",
        changed(clock=ClockReading(1_020_000, 1_000_000, 1_020_002)),
        check="clock",
        what="20.0 s ahead of the controller",
        cure="NTP",
        severity=Severity.WARNING,
    ),
    Fault(
        "clock is behind",
        changed(clock=ClockReading(1_000_000, 1_020_000, 1_000_500)),
        check="clock",
        what="19.5 s behind the controller",
        cure="NTP",
        severity=Severity.WARNING,
    ),
    Fault(
        "keys lie elsewhere",
        changed(choose=by_crc32, keyed_topics={"orders"}),
        check="keys",
        what="of 100 sampled records lie in other partitions than Kafka's murmur2",
        cure='"partitioner": "murmur2_random"',
        severity=Severity.WARNING,
    ),
]


@pytest.mark.parametrize("fault", [pytest.param(one, id=one.name) for one in FAULTS])
def test_planted_fault_is_found_alone_and_with_its_cure(fault: Fault, tmp_path: Path) -> None:
    cluster = Cluster()
    fault.plant(cluster)
    settings = dict(fault.settings)
    if settings.get("state.dir") == "FILE":
        (tmp_path / "file").touch()
        settings = {"state.dir": str(tmp_path / "file")}

    (found,) = check(cluster, tmp_path, **settings)

    assert (found.severity, found.check) == (fault.severity, fault.check)
    assert fault.what in found.what
    assert fault.cure in found.cure


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
            "bootstrap.servers": "broker:9092",
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


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param(None, id="brokers that do not tell the time"),
        pytest.param(ClockReading(1_000_000, 1_000_000 - TOLERANCE_MS, 1_000_001), id="within the tolerance"),
        pytest.param(ClockReading(1_000_000, 1_015_000, 1_030_000), id="an answer that took half a minute"),
    ],
)
def test_clock_that_may_be_right_is_no_finding(reading: ClockReading | None) -> None:
    assert list(clock_findings(reading)) == []


def test_limits_that_brokers_do_not_tell_are_not_checked(tmp_path: Path) -> None:
    assert check(Cluster(broker_settings={}), tmp_path, **EXACTLY_ONCE) == []


def test_producer_that_waits_for_no_replicas_needs_none(tmp_path: Path) -> None:
    cluster = Cluster()
    few_replicas(cluster)

    assert check(cluster, tmp_path, **{"producer.acks": "1", "producer.enable.idempotence": False}) == []


def stored(folder: Path) -> tuple[Any, StreamsConfig]:
    """The plan of an application with a store, and its settings."""
    config = StreamsConfig(
        {
            "application.id": "shop",
            "state.dir": str(folder),
            "default.key.serde": Serdes.string(),
            "default.value.serde": Serdes.string(),
        }
    )
    builder = StreamsBuilder()
    builder.stream("orders").group_by_key().count()
    return builder.build().plan(config), config


def test_folder_that_has_rights_and_takes_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As below /proc, and on a disk that is mounted for reading only; for root, too."""
    made: list[str] = []

    def refuse(path: str, *_: object) -> None:
        made.append(str(path))
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    (tmp_path / "pykstreams").mkdir()
    plan, config = stored(tmp_path)
    monkeypatch.setattr(os, "mkdir", refuse)
    [found] = (one for one in disk_findings(plan, config, lambda _: DiskRoom(10, 5)) if one.severity is Severity.ERROR)

    assert [Path(one).parent for one in made] == [tmp_path / "pykstreams"]
    assert found.what == (
        f"local state cannot be written: {str(tmp_path / 'pykstreams')!r} takes no folder (Read-only file system)"
    )
    assert list(tmp_path.rglob("*")) == [tmp_path / "pykstreams"]


def test_trying_to_write_leaves_nothing_behind(tmp_path: Path) -> None:
    list(disk_findings(*stored(tmp_path), lambda _: DiskRoom(10, 5)))

    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_found_before_the_start(tmp_path: Path) -> None:
    full, temporary = disk_findings(*stored(tmp_path), lambda _: DiskRoom(5, 10))

    assert (full.severity, "5 bytes left" in full.what) == (Severity.ERROR, True)
    assert temporary.severity is Severity.WARNING
