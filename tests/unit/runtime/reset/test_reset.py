"""A reset says exactly what it does, and does exactly that; it refuses groups with members."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError, ConfigError, LockError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.inspection.group_tools import GroupMember, GroupView
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.reset.reset import Reset
from pykstreams.runtime.reset.reset_plan import topics_to_delete
from pykstreams.runtime.reset.targets import Current, Earliest, Target
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.topology.plan import InternalTopic, TopologyPlan
from tests.unit.runtime.plans import part, plan, sink, source

COUNTS = InternalTopic("shop-counts-changelog", "changelog", None, {})
MEMBER = GroupMember("m-1", "shop-1", "/10.0.0.1")


@dataclass
class FakeCluster:
    """Topics whose partitions hold the offsets 10 to 100."""

    topics: dict[str, int]

    def partition_counts(self) -> dict[str, int]:
        return dict(self.topics)

    def delete_topics(self, topics: Collection[str]) -> None:
        for topic in topics:
            del self.topics[topic]

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 10)

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 100)

    def offsets_at(self, partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, -1)


@dataclass
class FakeGroup:
    """A group that takes offsets while it is empty."""

    offsets: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)
    members: tuple[GroupMember, ...] = ()
    protocol: str = "classic"
    state: str = "Dead"

    def view(self) -> GroupView:
        return GroupView("streams" if self.protocol == "streams" else "classic", self.members, self.state)

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {place: self.offsets[place] for place in partitions if place in self.offsets}

    def set_offsets(self, offsets: Offsets) -> None:
        if self.members:
            raise ClusterError("the group has members")
        self.offsets.update(offsets)

    def remove(self, members: Collection[GroupMember]) -> None:
        self.members = tuple(one for one in self.members if one not in members)


def shop() -> TopologyPlan:
    return plan(
        part(0, source("A", "orders"), sink("B", "shop-x-repartition"), sink("C", "bills")),
        part(
            1,
            source("D", "shop-x-repartition"),
            repartition=[("shop-x-repartition", None)],
            changelogs={"counts": COUNTS},
            stores={"counts": object()},
        ),
    )


def whole_cluster() -> FakeCluster:
    names = ["orders", "bills", "shop-x-repartition", "shop-counts-changelog", "shop-eu-counts-changelog"]
    return FakeCluster(dict.fromkeys([*names, "shop-tasks-a-0"], 1))


def config(folder: Path) -> StreamsConfig:
    return StreamsConfig({"application.id": "shop", "bootstrap.servers": "broker:9092", "state.dir": str(folder)})


def reset(folder: Path, cluster: FakeCluster, group: FakeGroup) -> Reset:
    return Reset(shop(), config(folder), client=cluster, group=group, clock=SystemClock())


def some_state(folder: Path) -> StateDirectory:
    """The state of a worker that has stopped."""
    directory = StateDirectory.of(config(folder), clock=SystemClock())
    directory.make(config(folder))
    task = directory.task_dir(TaskId(1, 0))
    (task / "rocksdb").mkdir()
    (task / "rocksdb" / "rows").write_text("rows")
    return directory


def test_plan_tells_offsets_topics_and_state_and_what_is_left_alone(tmp_path: Path) -> None:
    directory = some_state(tmp_path)

    planned = reset(tmp_path, whole_cluster(), FakeGroup({TopicPartition("orders", 0): (55, "notes")})).plan(Earliest())

    assert list(planned.lines()) == [
        "offset of orders-0 in group shop: 55 -> 10",
        "delete topic shop-counts-changelog",
        "delete topic shop-tasks-a-0",
        "delete topic shop-x-repartition",
        f"delete local state in {directory.path} (tasks 1_0)",
    ]
    assert list(planned.notes()) == [
        "topic shop-eu-counts-changelog is left alone: it looks like one of this application, and the topology does "
        "not make it; --internal-topics shop-eu-counts-changelog deletes it"
    ]


def test_state_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Or a state directory that was mistyped would leave state to a start that cannot use it."""
    work = reset(tmp_path / "nope", whole_cluster(), FakeGroup())
    folder = tmp_path / "nope" / "pykstreams" / "shop"
    planned = work.plan(Earliest())
    work.carry_out(planned)

    assert not any("local state" in line for line in planned.lines())
    assert list(planned.notes())[-1] == (
        f"no local state in {folder}: where workers have run on another machine or with another state directory, "
        "delete it there, by --to-current with their --state-dir, before they start"
    )
    assert not any("local state" in line for line in work.plan(Earliest(), keep_state=True).notes())
    assert not folder.exists()


def test_nothing_is_said_of_local_state_that_a_topology_never_has(tmp_path: Path) -> None:
    without = plan(part(0, source("A", "orders"), sink("B", "bills")))
    work = Reset(without, config(tmp_path), client=whole_cluster(), group=FakeGroup(), clock=SystemClock())

    assert not any("no local state" in line for line in work.plan(Earliest()).notes())


@pytest.mark.parametrize("target", [Earliest(), Current()], ids=str)
def test_application_of_which_nothing_is_found_is_told_with_the_places(tmp_path: Path, target: Target) -> None:
    """Its offsets can be set all the same, as by Kafka Streams' tool: it may be about to start for the first time."""
    planned = reset(tmp_path, FakeCluster({"orders": 1, "bills": 1}), FakeGroup()).plan(target)

    assert len(list(planned.lines())) == (target == Earliest())
    assert list(planned.notes()) == [
        "nothing was found of an application shop: no group and no topics on broker:9092, and no local state in "
        f"{tmp_path / 'pykstreams' / 'shop'}; where it has run, correct application.id, bootstrap.servers or state.dir"
    ]


@pytest.mark.parametrize(
    ("topics", "group"),
    [
        (["shop-x-repartition"], FakeGroup()),
        (["shop-former-changelog"], FakeGroup()),
        ([], FakeGroup({TopicPartition("orders", 0): (55, "")})),
        ([], FakeGroup(state="Empty")),
    ],
    ids=["topic", "topic-of-a-former-topology", "offsets", "group"],
)
def test_application_of_which_something_is_found_is_known(tmp_path: Path, topics: list[str], group: FakeGroup) -> None:
    planned = reset(tmp_path, FakeCluster(dict.fromkeys(["orders", *topics], 1)), group).plan(Current())
    with_state = reset(some_state(tmp_path).path.parents[1], FakeCluster({"orders": 1}), FakeGroup()).plan(Current())

    assert "nothing was found" not in " ".join([*planned.notes(), *with_state.notes()])


def test_planning_changes_nothing(tmp_path: Path) -> None:
    directory, cluster, group = some_state(tmp_path), whole_cluster(), FakeGroup()
    reset(tmp_path, cluster, group).plan(Earliest())

    assert cluster.topics == whole_cluster().topics
    assert group.offsets == {}
    assert directory.tasks() == [TaskId(1, 0)]


def test_reset_does_what_it_planned_and_a_second_one_has_only_offsets_left(tmp_path: Path) -> None:
    directory, cluster = some_state(tmp_path), whole_cluster()
    group = FakeGroup({TopicPartition("orders", 0): (55, "partition time")})
    work = reset(tmp_path, cluster, group)
    work.carry_out(work.plan(Earliest()))

    assert group.offsets == {TopicPartition("orders", 0): (10, "")}
    assert sorted(cluster.topics) == ["bills", "orders", "shop-eu-counts-changelog"]
    assert directory.tasks() == []
    assert list(work.plan(Current()).lines()) == []


def test_missing_input_topic_is_told_and_does_not_stop_the_reset(tmp_path: Path) -> None:
    planned = reset(tmp_path, FakeCluster({"shop-x-repartition": 1}), FakeGroup()).plan(Earliest())

    assert planned.unread == ("orders",)
    assert list(planned.lines()) == ["delete topic shop-x-repartition"]


def test_members_are_named_and_nothing_is_reset(tmp_path: Path) -> None:
    with pytest.raises(ClusterError) as raised:
        reset(tmp_path, whole_cluster(), FakeGroup(members=(MEMBER,))).check_members(force=False)

    assert str(raised.value) == (
        "group 'shop' (classic) has 1 members, so it is not reset; stop all workers, and wait until session.timeout.ms "
        "is over for those that were killed, or remove them with --force (one that lives joins again):\n"
        "- m-1 (client shop-1, /10.0.0.1)"
    )


def test_force_removes_members_of_a_classic_group(tmp_path: Path) -> None:
    group = FakeGroup(members=(MEMBER,))
    work = reset(tmp_path, whole_cluster(), group)
    work.carry_out(work.plan(Earliest()), work.check_members(force=True))

    assert group.members == ()
    assert group.offsets == {TopicPartition("orders", 0): (10, "")}


def test_force_does_not_pretend_to_remove_members_of_a_streams_group(tmp_path: Path) -> None:
    group = FakeGroup(members=(MEMBER,), protocol="streams")

    with pytest.raises(ClusterError, match="members of a streams group cannot be removed by a tool"):
        reset(tmp_path, whole_cluster(), group).check_members(force=True)


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_members_that_join_while_the_question_is_answered_stop_a_reset_that_sets_no_offsets(
    protocol: str, tmp_path: Path
) -> None:
    """Where offsets are set the coordinator refuses it."""
    directory, cluster, group = some_state(tmp_path), whole_cluster(), FakeGroup(protocol=protocol)
    work = reset(tmp_path, cluster, group)
    members, planned = work.check_members(force=False), work.plan(Current())
    group.members = (MEMBER,)
    with pytest.raises(ClusterError, match="has 1 members, so it is not reset"):
        work.carry_out(planned, members)

    assert cluster.topics == whole_cluster().topics
    assert directory.tasks() == [TaskId(1, 0)]


def test_members_that_join_again_when_they_were_removed_stop_the_reset(tmp_path: Path) -> None:
    class Living(FakeGroup):
        def remove(self, members: Collection[GroupMember]) -> None:
            """They join again at once."""

    cluster, group = whole_cluster(), Living(members=(MEMBER,))
    work = reset(tmp_path, cluster, group)
    with pytest.raises(ClusterError, match="has 1 members, so it is not reset"):
        work.carry_out(work.plan(Current()), work.check_members(force=True))

    assert cluster.topics == whole_cluster().topics


def test_state_in_use_stops_the_reset_before_anything_is_changed(tmp_path: Path) -> None:
    directory, cluster, group = some_state(tmp_path), whole_cluster(), FakeGroup()
    directory.lock(TaskId(1, 0))
    work = reset(tmp_path, cluster, group)
    with pytest.raises(LockError, match="is in use by process"):
        work.carry_out(work.plan(Earliest()))

    assert cluster.topics == whole_cluster().topics
    assert group.offsets == {}
    directory.close()


def test_global_stores_in_use_stop_the_reset_before_anything_is_changed(tmp_path: Path) -> None:
    """Of a worker that has no tasks, and that the group has forgotten."""
    directory, cluster, group = some_state(tmp_path), whole_cluster(), FakeGroup()
    directory.process_id(lambda: "p")
    directory.global_dir.mkdir()
    work = reset(tmp_path, cluster, group)
    with pytest.raises(LockError, match=r"global-0'\] are in use by another process"):
        work.carry_out(work.plan(Earliest()))

    assert cluster.topics == whole_cluster().topics
    assert group.offsets == {}
    assert directory.tasks() == [TaskId(1, 0)]
    directory.close()
    work.carry_out(work.plan(Earliest()))
    assert list(directory.path.glob("global-*")) == []


def test_internal_topic_of_a_former_topology_goes_when_it_is_named() -> None:
    gone, left_alone = topics_to_delete(shop(), ["shop-old-changelog", "shop-eu-x-changelog"], ["shop-old-changelog"])

    assert gone == ("shop-old-changelog",)
    assert left_alone == ("shop-eu-x-changelog",)


@pytest.mark.parametrize("topic", ["orders", "other-counts-changelog", "shop-nowhere-changelog"])
def test_topic_that_is_not_internal_to_the_application_is_never_deleted(topic: str) -> None:
    with pytest.raises(ConfigError, match="is no internal topic of 'shop'"):
        topics_to_delete(shop(), ["orders", "other-counts-changelog", "shop-counts-changelog"], [topic])
