"""What a worker does with a bootstrap: what it refuses, where the group begins, what tasks begin with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import BootstrapError, TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import BEGINNING, END, Offsets
from pykstreams.runtime.swap.bootstrap import GENERATION, PIN, Bootstrap, GroupStart, Pin, TaskBase
from pykstreams.runtime.tasks.offset_metadata import decode, encode
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.bulk.description import described
from pykstreams.state.bulk.manifest import Manifest, StoreManifest, publish
from pykstreams.state.bulk.take_over import mark_of
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.topology.plan import TopologyPlan
from tests.unit.runtime.cluster_fakes import FakeClock
from tests.unit.runtime.swap.fake_offsets import FakeOffsets
from tests.unit.state.bulk.bulk_support import ID, Part, rows_of, write_task
from tests.unit.state.support import Context

TEXT = Serdes.string()
CONFIG = StreamsConfig({"application.id": "shop"})
CHANGELOG = "shop-counts-changelog"
ORDERS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
LAYOUT = TopicLayout(
    {"orders": 2, CHANGELOG: 2}, {TaskId(0, number): frozenset({ORDERS[number]}) for number in range(2)}
)


def plan(*stores: str, config: StreamsConfig = CONFIG, serde: Any = None, orders: str = "orders") -> TopologyPlan:
    """Counts orders, once for each store."""
    builder = StreamsBuilder()
    stream = builder.stream(orders, Consumed(key_serde=serde or TEXT, value_serde=TEXT))
    for name in stores or ("counts",):
        stream.group_by_key(Grouped(key_serde=serde or TEXT, value_serde=TEXT)).count(materialized=Materialized(name))
    return builder.build().plan(config)


@dataclass
class FakeGroupOffsets:
    """The offsets of a group; ``members`` says what becomes of the next commits."""

    offsets: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)
    members: list[Callable[[], None]] = field(default_factory=list)
    clock: FakeClock = field(default_factory=FakeClock)
    unknown: int = 0

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None:
        if self.unknown:
            self.unknown -= 1
            return None
        return {place: self.offsets[place] for place in partitions if place in self.offsets}

    def commit(self, offsets: Offsets) -> bool:
        if self.members:
            self.members.pop(0)()
            raise TaskMigratedError("the group has members")
        self.offsets.update(offsets)
        return True

    def poll(self, timeout: float) -> None:
        self.clock.advance(timeout)


@pytest.fixture
def make_bootstrap(tmp_path: Path) -> Callable[..., Path]:
    """Publishes counts of two keys in task 0 and none in task 1, which stand for offset 40 and 41 of the orders."""

    def make(name: str = "bootstrap", offsets: tuple[int, int] = (0, 0), **more: Any) -> Path:
        folder = tmp_path / name
        topology = plan()
        part = topology.subtopologies[0]
        parts = {0: Part(rows_of({"a": "\0" * 8, "b": "\0" * 8}), offsets[0]), 1: Part([], offsets[1])}
        tasks = {
            number: write_task(folder, part.stores["counts"], one, task_id=TaskId(0, number))
            for number, one in parts.items()
        }
        stores = {"counts": StoreManifest(described(topology, CONFIG)["counts"], tasks)}
        manifest = Manifest(ID, "shop", 0, "write", {"orders": {0: 40, 1: 41}}, stores)
        publish(folder, replace(manifest, **more))
        return folder

    return make


def started(
    folder: Path,
    group: FakeGroupOffsets,
    offsets: FakeOffsets | None = None,
    *,
    reset: bool = False,
    topology: TopologyPlan | None = None,
    layout: TopicLayout = LAYOUT,
    policy: Callable[[TopicPartition], int] = lambda place: BEGINNING,
) -> None:
    topology = topology or plan()
    given = Bootstrap(folder, topology, CONFIG)
    given.check_tasks(layout)
    GroupStart(
        given, topology, layout, group=group, offsets=offsets or FakeOffsets(), policy=policy, clock=group.clock
    ).settle(reset=reset)


# --- what does not fit ---


def test_another_application_is_refused(make_bootstrap: Callable[..., Path]) -> None:
    config = CONFIG.replace({"application.id": "stall"})

    with pytest.raises(BootstrapError, match=r"was made for application 'shop', and this is 'stall'"):
        Bootstrap(make_bootstrap(), plan(config=config), config)


def test_a_store_that_the_topology_has_not_is_refused(make_bootstrap: Callable[..., Path]) -> None:
    with pytest.raises(BootstrapError, match=r"holds store 'counts', which the topology has not; it has \['sums'\]"):
        Bootstrap(make_bootstrap(), plan("sums"), CONFIG)


def test_a_store_that_has_changed_is_refused_with_what_is_different(make_bootstrap: Callable[..., Path]) -> None:
    with pytest.raises(
        BootstrapError, match=r"does not fit store 'counts' .*: key_serde was .* and is 'LongSerde\(\)'"
    ):
        Bootstrap(make_bootstrap(), plan(serde=Serdes.long()), CONFIG)


def test_a_store_that_was_added_does_not_matter(make_bootstrap: Callable[..., Path]) -> None:
    assert Bootstrap(make_bootstrap(), plan("counts", "sums"), CONFIG).manifest.id == ID


def test_a_missing_file_is_refused_before_anything_else_happens(make_bootstrap: Callable[..., Path]) -> None:
    folder = make_bootstrap()
    (folder / "stores/counts/0_0/0-0-0.sst").unlink()

    with pytest.raises(BootstrapError, match=r"is incomplete: stores/counts/0_0/0-0-0\.sst is missing\. Copy it again"):
        Bootstrap(folder, plan(), CONFIG)


def test_another_number_of_tasks_is_refused(make_bootstrap: Callable[..., Path]) -> None:
    inputs = {TaskId(0, number): frozenset({TopicPartition("orders", number)}) for number in range(3)}

    with pytest.raises(BootstrapError, match=r"has 2 tasks for store 'counts', and .* there are 3"):
        started(make_bootstrap(), FakeGroupOffsets(), layout=TopicLayout({"orders": 3}, inputs))


def test_another_number_of_partitions_of_an_input_is_refused(make_bootstrap: Callable[..., Path]) -> None:
    folder = make_bootstrap(source_offsets={"orders": {0: 40}})

    with pytest.raises(BootstrapError, match=r"has offsets for the partitions \[0\] of topic 'orders', which has 2"):
        started(folder, FakeGroupOffsets())


# --- where the group begins ---


def test_a_new_group_begins_at_the_offsets_of_the_bootstrap_with_its_pin(make_bootstrap: Callable[..., Path]) -> None:
    group = FakeGroupOffsets(unknown=2)
    started(make_bootstrap(source_times={"orders": {0: 77}}, metadata={"0_1": {"emitted": 5}}), group)
    (first, one), (second, two) = group.offsets[ORDERS[0]], group.offsets[ORDERS[1]]

    assert (first, second) == (40, 41)
    assert decode(one) == (77, {PIN: Pin(int(ID, 16) >> 66, False).value})
    assert decode(two) == (-1, {"emitted": 5, PIN: Pin(int(ID, 16) >> 66, False).value})


def test_a_group_that_began_with_this_bootstrap_goes_on(make_bootstrap: Callable[..., Path]) -> None:
    group = FakeGroupOffsets()
    started(make_bootstrap(), group)
    group.offsets[ORDERS[0]] = 90, group.offsets[ORDERS[0]][1]
    before = dict(group.offsets)
    written_since = FakeOffsets(ends={TopicPartition(CHANGELOG, 0): 50})
    started(make_bootstrap("again"), group, written_since)
    started(make_bootstrap("and again"), group, written_since, reset=True)

    assert group.offsets == before


def test_other_offsets_are_refused_unless_they_are_given_up(make_bootstrap: Callable[..., Path]) -> None:
    group = FakeGroupOffsets({ORDERS[0]: (70, encode(5, {}))})
    folder = make_bootstrap()

    with pytest.raises(
        BootstrapError, match=r"group 'shop' has offsets already, .* such as 70 in orders-0\. .* --reset-offsets"
    ):
        started(folder, group)
    started(folder, group, reset=True)
    assert {place: offset for place, (offset, _) in group.offsets.items()} == {ORDERS[0]: 40, ORDERS[1]: 41}


def test_offsets_that_began_with_another_bootstrap_are_refused(make_bootstrap: Callable[..., Path]) -> None:
    group = FakeGroupOffsets()
    started(make_bootstrap(), group)

    with pytest.raises(BootstrapError, match="has offsets already, which did not begin with it"):
        started(make_bootstrap("other", id="f" * 32), group)


def test_offsets_that_somebody_has_moved_are_refused(make_bootstrap: Callable[..., Path]) -> None:
    group = FakeGroupOffsets()
    folder = make_bootstrap()
    started(folder, group)
    group.offsets[ORDERS[0]] = 10, ""

    with pytest.raises(BootstrapError, match="such as 10 in orders-0"):
        started(folder, group)


def test_an_input_that_came_later_does_not_matter(make_bootstrap: Callable[..., Path]) -> None:
    group = FakeGroupOffsets()
    folder = make_bootstrap()
    started(folder, group)
    late = TopicPartition("returns", 0)
    group.offsets[late] = 3, ""
    layout = replace(LAYOUT, inputs={**LAYOUT.inputs, TaskId(1, 0): frozenset({late})})
    started(folder, group, layout=layout)

    assert group.offsets[late] == (3, "")


def test_of_two_workers_that_start_at_once_the_second_goes_on_where_the_first_began(
    make_bootstrap: Callable[..., Path],
) -> None:
    first, second = FakeGroupOffsets(), FakeGroupOffsets()
    folder = make_bootstrap()

    def begin_elsewhere() -> None:
        started(folder, first)
        second.offsets = {place: (offset + 1, text) for place, (offset, text) in first.offsets.items()}

    second.members.append(begin_elsewhere)
    started(folder, second)

    assert second.offsets[ORDERS[0]][0] == 41


def test_a_group_whose_members_stay_is_refused(make_bootstrap: Callable[..., Path]) -> None:
    group = FakeGroupOffsets({ORDERS[0]: (70, "")}, members=[lambda: None] * 100)

    with pytest.raises(BootstrapError, match="while group 'shop' has other members: stop all workers"):
        started(make_bootstrap(), group, reset=True)
    assert group.offsets == {ORDERS[0]: (70, "")}


def test_offsets_that_cannot_be_read_are_waited_for_and_then_refused(make_bootstrap: Callable[..., Path]) -> None:
    with pytest.raises(BootstrapError, match="waits for the offsets of group 'shop'"):
        started(make_bootstrap(), FakeGroupOffsets(unknown=1000))


@pytest.mark.parametrize("range_", [(41, 100), (0, 39)], ids=["deleted", "not there yet"])
def test_inputs_without_the_offset_are_refused(make_bootstrap: Callable[..., Path], range_: tuple[int, int]) -> None:
    offsets = FakeOffsets({ORDERS[0]: range_[0]}, {ORDERS[0]: range_[1]})

    with pytest.raises(BootstrapError, match=rf"goes on at offset 40 of orders-0, which goes from {range_[0]} to"):
        started(make_bootstrap(), FakeGroupOffsets(), offsets)


def test_a_changelog_that_has_moved_on_is_refused(make_bootstrap: Callable[..., Path]) -> None:
    offsets = FakeOffsets(ends={TopicPartition(CHANGELOG, 0): 2, TopicPartition(CHANGELOG, 1): 1})

    with pytest.raises(BootstrapError, match=r"offset 0 of shop-counts-changelog-1, .* which ends at 1: something was"):
        started(make_bootstrap(offsets=(2, 0)), FakeGroupOffsets(), offsets)


def test_a_store_that_is_left_out_must_be_empty(make_bootstrap: Callable[..., Path]) -> None:
    topology, folder = plan("counts", "sums"), make_bootstrap()
    started(folder, FakeGroupOffsets(), topology=topology)
    offsets = FakeOffsets(ends={TopicPartition("shop-sums-changelog", 0): 3})

    with pytest.raises(BootstrapError, match=r"does not hold store 'sums', whose changelog .* has records from 0 to 3"):
        started(folder, FakeGroupOffsets(), offsets, topology=topology)


@pytest.mark.parametrize(("policy", "expected"), [(BEGINNING, 7), (END, 100), (33, 33)])
def test_an_input_that_is_left_out_begins_by_its_policy(
    make_bootstrap: Callable[..., Path], policy: int, expected: int
) -> None:
    group, offsets = FakeGroupOffsets(), FakeOffsets(begins=dict.fromkeys(ORDERS, 7))
    started(make_bootstrap(source_offsets={}), group, offsets, policy=lambda place: policy)

    assert {offset for offset, _ in group.offsets.values()} == {expected}
    started(make_bootstrap("again", source_offsets={}), group)


# --- what tasks begin with ---


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    made = StateDirectory(tmp_path / "state", "shop", clock=SystemClock())
    made.lock(TaskId(0, 0))
    return made


def pinned(folder: Path) -> Offsets:
    group = FakeGroupOffsets()
    started(folder, group)
    return {ORDERS[0]: group.offsets[ORDERS[0]]}


def base(folder: Path | None, offsets: FakeOffsets | None = None) -> TaskBase:
    given = None if folder is None else Bootstrap(folder, plan(), CONFIG)
    return TaskBase(plan(), CONFIG, offsets or FakeOffsets(), given)


def leave_something(directory: StateDirectory) -> Path:
    path = directory.task_dir(TaskId(0, 0)) / "rocksdb" / "counts"
    path.mkdir(parents=True)
    (path / "old").touch()
    return path / "old"


def test_a_task_takes_over_files_once(make_bootstrap: Callable[..., Path], directory: StateDirectory) -> None:
    folder = make_bootstrap()
    old = leave_something(directory)
    path = directory.task_dir(TaskId(0, 0))
    base(folder).make_ready(TaskId(0, 0), pinned(folder), directory)
    made = (path / "rocksdb/counts/CURRENT").stat().st_ino
    base(folder).make_ready(TaskId(0, 0), pinned(folder), directory)
    base(None).make_ready(TaskId(0, 0), pinned(folder), directory)

    assert mark_of(path) == Pin.of(Bootstrap(folder, plan(), CONFIG).manifest).mark
    assert (path / "rocksdb/counts/CURRENT").stat().st_ino == made
    assert not old.exists()


def test_a_worker_without_files_begins_with_nothing_and_restores(
    make_bootstrap: Callable[..., Path], directory: StateDirectory
) -> None:
    old = leave_something(directory)
    committed = pinned(make_bootstrap())
    base(None).make_ready(TaskId(0, 0), committed, directory)
    new = leave_something(directory)
    base(None).make_ready(TaskId(0, 0), committed, directory)

    assert old == new  # it was deleted the first time only
    assert new.exists()


def test_state_without_bootstrap_is_left_alone(directory: StateDirectory) -> None:
    old = leave_something(directory)
    base(None).make_ready(TaskId(0, 0), {ORDERS[0]: (5, encode(7, {"emitted": 1}))}, directory)
    base(None).make_ready(TaskId(0, 0), {}, directory)

    assert old.exists()


def test_stores_may_stay_open_exactly_where_state_is_left_alone(
    make_bootstrap: Callable[..., Path], directory: StateDirectory
) -> None:
    task, bases = TaskId(0, 0), base(None)
    with_pin = pinned(make_bootstrap())
    generation = {ORDERS[0]: (5, encode(7, {GENERATION: 3}))}
    found = []
    for committed in ({}, with_pin, with_pin, generation, generation, {}):
        old = leave_something(directory)
        ready = bases.is_ready(task, committed, directory)
        bases.make_ready(task, committed, directory)
        found.append((ready, old.exists()))
        shutil.rmtree(old.parent, ignore_errors=True)

    assert found == [(True, True), (False, False), (True, True), (False, False), (True, True), (True, True)]


def test_base_only_state_is_refused_without_its_files(
    make_bootstrap: Callable[..., Path], directory: StateDirectory
) -> None:
    folder = make_bootstrap(changelog="base-only")
    old = leave_something(directory)
    committed = pinned(folder)

    with pytest.raises(BootstrapError, match=r"not in the changelogs \('base-only'\).* not given it; start it with"):
        base(None).make_ready(TaskId(0, 0), committed, directory)
    with pytest.raises(BootstrapError, match="was given another one, ffffffff"):
        base(make_bootstrap("other", id="f" * 32)).make_ready(TaskId(0, 0), committed, directory)
    assert old.exists()
    base(folder).make_ready(TaskId(0, 0), committed, directory)
    assert not old.exists()


def test_files_do_not_stand_for_less_than_what_retention_has_left(
    make_bootstrap: Callable[..., Path], directory: StateDirectory
) -> None:
    folder = make_bootstrap()
    place = TopicPartition(CHANGELOG, 0)
    offsets = FakeOffsets({place: 30}, {place: 60})
    base(folder, offsets).make_ready(TaskId(0, 0), pinned(folder), directory)
    store = plan().subtopologies[0].stores["counts"].build()
    store.init(Context(directory.task_dir(TaskId(0, 0))))
    offset = store.committed_offset()
    store.close()

    assert offset == 30


def test_a_changelog_that_was_made_anew_is_refused(
    make_bootstrap: Callable[..., Path], directory: StateDirectory
) -> None:
    folder = make_bootstrap(offsets=(9, 0))
    group = FakeGroupOffsets()
    started(folder, group, FakeOffsets(ends={TopicPartition(CHANGELOG, 0): 9}))

    with pytest.raises(
        BootstrapError, match=r"offset 9 of shop-counts-changelog-0, .* ends at 0: the topic is another"
    ):
        base(folder).make_ready(TaskId(0, 0), group.offsets, directory)
