"""Which bootstraps tasks that run can be swapped to, where they begin in one, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pykstreams import BuiltInDslStoreSuppliers, Consumed, Grouped, Materialized, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.core.errors import BootstrapError, StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.swap.bootstrap import GENERATION, PIN, Bootstrap, Pin, TaskBase
from pykstreams.runtime.swap.generation import BootstrapLoad, Generation
from pykstreams.runtime.tasks.offset_metadata import decode, encode
from pykstreams.state import Stores
from pykstreams.state.bulk.description import described
from pykstreams.state.bulk.manifest import Manifest, StoreManifest, TaskFiles, new_id, publish
from pykstreams.state.bulk.take_over import mark_of, next_of, put_in_place, put_mark
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.testing.clock import MockClock
from pykstreams.topology.plan import TopologyPlan
from tests.unit.runtime.swap.fake_offsets import FakeOffsets

TEXT = Serdes.string()
SETTINGS: dict[str, object] = {"application.id": "shop"}
CONFIG = StreamsConfig(SETTINGS)
TASK = TaskId(0, 0)
ORDERS = TopicPartition("orders", 0)
MADE_MS = 1_700_000_000_000


def counts(*stores: Any, key: Callable[[str, str], str] | None = None, config: StreamsConfig = CONFIG) -> TopologyPlan:
    """Counts orders in some stores, by their key or by another one."""
    builder = StreamsBuilder()
    stream: Any = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT))
    for store in stores or ("counts",):
        given = Grouped(key_serde=TEXT, value_serde=TEXT)
        grouped = stream.group_by_key(given) if key is None else stream.group_by(key, given)
        grouped.count(materialized=store if isinstance(store, Materialized) else Materialized(store))
    return builder.build().plan(config)


def of(
    plan: TopologyPlan,
    folder: Path,
    *stores: str,
    made_ms: int = MADE_MS,
    sources: Mapping[str, Mapping[int, int]] | None = None,
    offsets: FakeOffsets | None = None,
    config: StreamsConfig = CONFIG,
    **more: Any,
) -> Generation:
    """An empty bootstrap of these stores, or of all, which stands for offset 40 of the orders."""
    about = described(plan, config)
    empty = {0: TaskFiles((), 0, 0, 0)}
    manifests = {name: StoreManifest(about[name], empty) for name in stores or about}
    publish(
        folder / str(made_ms),
        replace(
            Manifest(
                new_id(), "shop", made_ms, "write", {"orders": {0: 40}} if sources is None else sources, manifests
            ),
            **more,
        ),
    )
    return Generation(Bootstrap(folder / str(made_ms), plan, config), plan, config, offsets or FakeOffsets())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for made_ms in (MADE_MS, MADE_MS + 1):
        (tmp_path / str(made_ms)).mkdir()
    return tmp_path


def at(offset: int, **numbers: int) -> dict[TopicPartition, tuple[int, str]]:
    return {ORDERS: (offset, encode(7, numbers))}


# --- stores that cannot be swapped ---


def test_all_stores_of_a_task_are_needed(folder: Path) -> None:
    with pytest.raises(
        BootstrapError,
        match=r"does not hold store 'sums', which is in the same tasks as \['counts'\]: .* Bootstrap it, too",
    ):
        of(counts("counts", "sums"), folder, "counts")


@pytest.mark.parametrize(
    ("store", "why"),
    [
        (Materialized("counts", store_type=BuiltInDslStoreSuppliers.IN_MEMORY), "it is not kept on disk"),
        (Materialized("counts", logging=False), "it has no changelog, so that it would be lost"),
    ],
)
def test_stores_that_would_be_lost_are_refused(folder: Path, store: Any, why: str) -> None:
    with pytest.raises(BootstrapError, match=rf"cannot be loaded while the application runs: store 'counts' .* {why}"):
        of(counts(store), folder)


def test_stores_whose_changelog_does_not_tell_their_rows_are_refused(folder: Path) -> None:
    builder = StreamsBuilder()
    supplier: Any = Stores.persistent_versioned_key_value_store("prices", 86_400_000)
    builder.table("orders", Consumed(key_serde=TEXT, value_serde=TEXT), materialized=Materialized(supplier))

    with pytest.raises(
        BootstrapError, match=r"the changelog of a store of its kind \(versioned\) does not hold its rows"
    ):
        of(builder.build().plan(CONFIG), folder)


def reused(config: StreamsConfig) -> TopologyPlan:
    builder = StreamsBuilder()
    builder.table("orders", Consumed(key_serde=TEXT, value_serde=TEXT), materialized=Materialized("customers"))
    return builder.build(config).plan(config)


def test_a_source_topic_cannot_be_made_to_say_something_else(folder: Path) -> None:
    config = StreamsConfig({**SETTINGS, "topology.optimization": "all"})

    with pytest.raises(BootstrapError, match=r"it is restored from its source topic 'orders', which says what it is"):
        of(reused(config), folder, config=config)


# --- offsets ---


def test_a_task_that_has_not_come_to_the_offsets_is_refused(folder: Path) -> None:
    generation = of(counts(), folder)
    generation.check(TASK, [ORDERS], at(40))

    with pytest.raises(BootstrapError, match=r"goes on at offset 40 of orders-0, and task 0_0 has come to 39 only"):
        generation.check(TASK, [ORDERS], at(39))


def test_inputs_that_were_deleted_are_refused(folder: Path) -> None:
    generation = of(counts(), folder, offsets=FakeOffsets({ORDERS: 41}))

    with pytest.raises(BootstrapError, match=r"offset 40 of orders-0, which goes from 41 to 100: records after the"):
        generation.check(TASK, [ORDERS], at(50))


def test_a_repartition_topic_that_was_purged_is_refused(folder: Path) -> None:
    plan = counts(key=lambda key, value: value)
    topic = next(name for part in plan.subtopologies for name in part.repartition_topics)
    place, task = TopicPartition(topic, 0), TaskId(1, 0)
    generation = of(plan, folder, sources={topic: {0: 12}}, offsets=FakeOffsets({place: 30}, {place: 100}))

    with pytest.raises(BootstrapError, match=r"from 30 to 100: a repartition topic is purged of what was processed"):
        generation.check(task, [place], {place: (30, "")})


def test_an_input_without_an_offset_is_refused(folder: Path) -> None:
    plan = counts(key=lambda key, value: value)
    topic = next(name for part in plan.subtopologies for name in part.repartition_topics)
    generation = of(plan, folder)

    with pytest.raises(BootstrapError, match=rf"has no offset for {topic}-0, which task 1_0 reads, .* --reset-offsets"):
        generation.check(TaskId(1, 0), [TopicPartition(topic, 0)], {})


def test_tasks_without_stores_of_it_are_left_alone(folder: Path) -> None:
    plan = counts(key=lambda key, value: value)
    generation = of(plan, folder)
    generation.check(TASK, [ORDERS], at(1))

    assert not generation.is_due(TASK, None)
    assert generation.is_due(TaskId(1, 0), None)


# --- generations ---


def test_an_older_bootstrap_is_refused_and_the_same_one_is_no_work(folder: Path) -> None:
    old, new = of(counts(), folder), of(counts(), folder, made_ms=MADE_MS + 1)
    swapped = at(90, **{GENERATION: new.number})

    with pytest.raises(BootstrapError, match=r"is older than the state of task 0_0, .* make a new bootstrap"):
        old.check(TASK, [ORDERS], swapped)
    new.check(TASK, [ORDERS], swapped)
    assert not new.is_due(TASK, new.number)
    assert new.is_due(TASK, old.number)
    assert 0 < old.number < new.number < 1 << 63


def test_a_task_begins_at_its_offsets_and_carries_on_what_the_group_began_with(folder: Path) -> None:
    generation = of(counts(), folder, source_times={"orders": {0: 5}}, metadata={"0_0": {"emitted": 3}})
    live = at(90, **{PIN: Pin(9, True).value, "emitted": 8})
    offset, text = generation.start_of(TASK, [ORDERS], live)[ORDERS]

    assert (offset, decode(text)) == (40, (5, {"emitted": 3, PIN: Pin(9, True).value}))


def test_all_rows_are_written_only_where_files_alone_have_some(folder: Path) -> None:
    generation = of(counts(), folder)

    assert generation.needs_everything(at(90, **{PIN: Pin(9, True).value}))
    assert not generation.needs_everything(at(90, **{PIN: Pin(9, False).value}))
    assert not generation.needs_everything(at(90, **{PIN: Pin(9, True).value, GENERATION: 5}))
    assert not generation.needs_everything(at(90))


def test_reused_changelogs_and_at_least_once_do_not_go_together(folder: Path) -> None:
    config = StreamsConfig({**SETTINGS, "topology.optimization": "all"})
    builder = StreamsBuilder()
    builder.table("customers", Consumed(key_serde=TEXT, value_serde=TEXT), materialized=Materialized("customers"))
    stream: Any = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT))
    stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).count(materialized=Materialized("counts"))
    plan = builder.build(config).plan(config)

    with pytest.raises(
        BootstrapError, match=r"runs at_least_once and restores stores from its input topics \['customers'\]"
    ):
        of(plan, folder, "counts", config=config)
    exact = config.replace({"processing.guarantee": "exactly_once_v2"})
    (folder / str(MADE_MS + 1)).mkdir(exist_ok=True)
    assert of(plan, folder, "counts", made_ms=MADE_MS + 1, config=exact).covers(TaskId(1, 0))


# --- what is told ---


def test_it_is_done_when_every_worker_has_told_that_no_task_is_left(folder: Path) -> None:
    generation = of(counts(), folder)
    load = BootstrapLoad(lambda: generation, lambda: ["a", "b"])
    generation.report("a", frozenset())

    assert load.waiting is None
    assert not load.wait(0)

    generation.report("b", frozenset({TASK}))
    assert load.waiting == {TASK}
    assert not load.wait(0)

    generation.report("b", frozenset())
    assert load.wait()
    assert load.error is None


def test_what_went_wrong_is_raised_to_whoever_waits(folder: Path) -> None:
    generation = of(counts(), folder)
    generation.give_up(BootstrapError("damaged"))
    generation.give_up(BootstrapError("the second"))

    with pytest.raises(BootstrapError, match="damaged"):
        BootstrapLoad(lambda: generation, lambda: ["a"]).wait()


def test_nobody_waits_before_the_start() -> None:
    load = BootstrapLoad(lambda: None, list)

    assert (load.waiting, load.error) == (None, None)
    with pytest.raises(StreamsError, match="has not been started; call start"):
        load.wait(0)


# --- folders ---


@pytest.fixture
def directory(tmp_path: Path) -> Any:
    found = StateDirectory(tmp_path / "state", "shop", clock=MockClock())
    found.lock(TASK)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("mark", "is_kept"),
    [(None, False), (Pin(9, True).mark, True), ("0000000000000004", False), ("0000000000000005", True)],
    ids=["unknown", "began with", "another generation", "this one"],
)
def test_state_is_kept_if_its_changelogs_lead_from_it_to_the_generation(
    directory: StateDirectory, mark: str | None, is_kept: bool
) -> None:
    path = directory.task_dir(TASK)
    store = path / "rocksdb" / "counts"
    store.mkdir(parents=True)
    if mark is not None:
        put_mark(path, mark)
    next_of(path).mkdir()
    committed = at(90, **{PIN: Pin(9, True).value, GENERATION: 5})
    TaskBase(counts(), CONFIG, FakeOffsets(), None).make_ready(TASK, committed, directory)

    assert mark_of(path) == "0000000000000005"
    assert store.exists() == is_kept
    assert not next_of(path).exists()


def test_state_of_a_group_that_began_with_no_bootstrap_is_kept(directory: StateDirectory) -> None:
    path = directory.task_dir(TASK)
    store = path / "rocksdb" / "counts"
    store.mkdir(parents=True)
    TaskBase(counts(), CONFIG, FakeOffsets(), None).make_ready(TASK, at(90, **{GENERATION: 5}), directory)

    assert (mark_of(path), store.exists()) == ("0000000000000005", True)


def test_a_swap_of_folders_that_ends_halfway_leaves_nothing_that_counts(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = directory.task_dir(TASK)
    put_mark(path, "old")
    put_mark(next_of(path), "0000000000000005")
    monkeypatch.setattr(Path, "rename", _only_once(Path.rename))

    with pytest.raises(BootstrapError, match=r"cannot take the place of the state beside it: .* look at the disk"):
        put_in_place(path)
    assert mark_of(path) is None
    monkeypatch.undo()
    TaskBase(counts(), CONFIG, FakeOffsets(), None).make_ready(TASK, at(90, **{GENERATION: 5}), directory)

    assert sorted(one.name for one in path.iterdir()) == [".lock", "rocksdb"]
    assert mark_of(path) == "0000000000000005"


def _only_once(rename: Callable[..., Any]) -> Callable[..., Any]:
    left = [1]

    def first(self: Path, target: Path) -> Any:
        if not left:
            raise OSError(28, "No space left on device")
        left.pop()
        return rename(self, target)

    return first
