"""Stores that users write: their life in a task, in the test driver and in a worker that starts again."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from pykstreams import Consumed, KafkaStreams, Processor, Record, Serdes, StreamsBuilder, StreamsConfig, Topology
from pykstreams.core.clock import SystemClock
from pykstreams.core.ids import TopicPartition
from pykstreams.core.record import RecordMetadata
from pykstreams.errors import ProcessorStateError
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.streams import GroupMembershipOperation
from pykstreams.state import (
    BatchingStateRestoreCallback,
    HeadersBytesStore,
    KeyValueStore,
    StateStore,
    StateStoreContext,
    StoreBuilder,
    Stores,
    StoreSupplier,
    TimestampedBytesStore,
)
from pykstreams.state.encoding.changelog_rows import ChangelogColumns
from pykstreams.state.user_stores import UserStore
from pykstreams.testing import MockProcessorContext, TopologyTestDriver
from tests.brokers.quick_cluster import SHORT_SESSION
from tests.unit.state.support import Context

TEXT = Serdes.string()


@pytest.fixture
def opening(tmp_path: Path) -> Context:
    return Context(tmp_path, {"default.key.serde": TEXT, "default.value.serde": TEXT})


class Votes(StateStore):
    """Counts how often each word was said: a store that is no mapping, with a changelog of its own making."""

    name = "votes"
    persistent = False
    is_open = False

    def __init__(self) -> None:
        self.counts: dict[bytes, int] = {}
        self.commits: list[Mapping[TopicPartition, int]] = []

    def init(self, context: StateStoreContext, root: StateStore) -> None:
        context.register(root, self.restored)
        self.changelog = context.changelog(self.name)
        self.context = context
        self.is_open = True

    def restored(self, key: bytes, value: bytes | None) -> None:
        self.counts[key] = 0 if value is None else int(value)

    def vote(self, word: str) -> int:
        key = word.encode()
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if self.changelog is not None:
            self.changelog(key, str(count).encode(), None, ())
        return count

    def commit(self, changelog_offsets: Mapping[TopicPartition, int]) -> None:
        self.commits.append(changelog_offsets)

    def close(self) -> None:
        self.is_open = False


class VotesSupplier(StoreSupplier[StateStore]):
    name = "votes"
    metrics_scope = "votes"

    def __init__(self, kind: type[StateStore] = Votes) -> None:
        self.kind = kind

    def get(self) -> StateStore:
        return self.kind()


class Count(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        count = self.context.get_state_store("votes").vote(record.value)
        self.context.forward(record.replace(value=f"{record.value}={count}"))


def counting(builder: StoreBuilder[UserStore]) -> Topology:
    script = StreamsBuilder()
    script.add_state_store(builder)
    script.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT)).process(Count, "votes").to("out")
    return script.build(settings())


def settings() -> dict[str, object]:
    return {"application.id": "votes-app", "default.key.serde": TEXT, "default.value.serde": TEXT}


def test_processor_gets_the_users_own_object_and_its_changelog_is_written() -> None:
    with TopologyTestDriver(counting(StoreBuilder(VotesSupplier())), settings()) as driver:
        words = driver.create_input_topic("in", TEXT, TEXT)
        for word in ("yes", "no", "yes"):
            words.pipe_value(word)
        out = driver.create_output_topic("out", TEXT, TEXT)
        log = driver.create_output_topic("votes-app-votes-changelog", TEXT, TEXT)
        store = driver.get_state_store("votes")

        assert out.read_values() == ["yes=1", "no=1", "yes=2"]
        assert log.read_key_values() == [("yes", "1"), ("no", "1"), ("yes", "2")]
        assert type(store) is Votes
        assert driver.get_all_state_stores() == {"votes": store}
        assert store.is_open
    assert not store.is_open


def test_it_is_not_given_to_another_task_open() -> None:
    """It knows its first context, and nothing tells it of another."""
    store: Any = StoreBuilder(VotesSupplier()).build()

    assert not store.can_be_released
    with pytest.raises(NotImplementedError, match="cannot be given to another task"):
        store.release()


def test_store_without_logging_has_no_changelog_and_is_committed_without_offsets() -> None:
    with TopologyTestDriver(counting(StoreBuilder(VotesSupplier(), logging=False)), settings()) as driver:
        driver.create_input_topic("in", TEXT, TEXT).pipe_value("yes")
        store = driver.get_state_store("votes")

        assert driver.produced_topic_names == {"out"}
        assert store.changelog is None
        assert store.commits
        assert set(map(len, store.commits)) == {0}


def test_settings_of_the_changelog_are_those_of_the_builder() -> None:
    topology = counting(StoreBuilder(VotesSupplier(), topic_config={"retention.ms": "5"}))

    (part,) = topology.plan(StreamsConfig(settings())).subtopologies
    (topic,) = part.changelog_topics.values()

    assert topic.name == "votes-app-votes-changelog"
    assert topic.config["retention.ms"] == "5"
    assert topic.config["cleanup.policy"] == "compact"


def test_context_tells_what_a_store_may_want_to_know(opening: Context) -> None:
    votes = Votes()
    UserStore(votes).init(opening)
    context = votes.context

    assert context.application_id == opening.application_id
    assert context.task_id == opening.task_id
    assert context.state_dir == opening.state_dir
    assert context.metrics is opening.metrics
    assert context.app_configs is opening.config
    assert context.app_configs_with_prefix("default.key.") == {"serde": TEXT}
    assert context.key_serde is opening.config.default_key_serde
    assert context.value_serde is opening.config.default_value_serde
    assert isinstance(context.record_metadata, RecordMetadata | None)


def test_records_of_the_changelog_come_one_by_one_or_all_at_once(opening: Context) -> None:
    class Batches(Votes, BatchingStateRestoreCallback):
        def init(self, context: StateStoreContext, root: StateStore) -> None:
            context.register(root, self)

        def restore_all(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
            self.batch = records

    one, all_ = Votes(), Batches()
    for store in (UserStore(one), UserStore(all_)):
        store.init(opening)
        store.restore(ChangelogColumns.of([(b"yes", b"3", 7, ()), (b"no", None, 8, ())]))

    assert one.counts == {b"yes": 3, b"no": 0}
    assert all_.batch == [(b"yes", b"3"), (b"no", None)]
    all_.restore(b"no", b"1")
    assert all_.batch == [(b"no", b"1")]


def test_marked_stores_are_restored_with_time_and_headers_in_front_of_values(opening: Context) -> None:
    class Raw(Votes):
        def restored(self, key: bytes, value: bytes | None) -> None:
            self.value = value

    class Timed(Raw, TimestampedBytesStore):
        pass

    class WithHeaders(Raw, HeadersBytesStore):
        pass

    found = []
    for kind in (Raw, Timed, WithHeaders):
        store = kind()
        driven = UserStore(store)
        driven.init(opening)
        driven.restore(ChangelogColumns.of([(b"k", b"v", 7, (("h", b"x"),))]))
        found.append(store.value)

    time = struct.pack(">q", 7)
    assert found == [b"v", time + b"v", bytes.fromhex("0a0202680278") + time + b"v"]
    assert TimestampedBytesStore.convert_to_timestamped_format(b"v") == b"\xff" * 8 + b"v"
    assert HeadersBytesStore.convert_to_header_format(b"v") == b"\0v"
    assert HeadersBytesStore.convert_from_plain_to_header_format(b"v") == b"\0" + b"\xff" * 8 + b"v"


def test_persistent_store_is_committed_with_its_offset_and_asked_for_it(opening: Context) -> None:
    class Kept(Votes):
        persistent = True

        def init(self, context: StateStoreContext, root: StateStore) -> None:
            context.register(root, self.restored, lambda: self.commits.append({}))

        def committed_offset(self, partition: TopicPartition) -> int | None:
            self.asked = partition
            return 41

    store = Kept()
    driven = UserStore(store)
    driven.init(opening)
    place = TopicPartition(opening.changelog_topic("votes"), opening.task_id.partition)

    assert driven.committed_offset() == 41
    assert store.asked == place
    driven.commit(None)
    driven.commit(45)
    assert store.commits == [{place: 41}, {}, {place: 45}, {}], "the callback comes after each commit"


def test_every_store_of_the_package_is_a_state_store() -> None:
    assert issubclass(KeyValueStore, StateStore)
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("s")).build()
    assert isinstance(store, StateStore)


def test_mock_context_opens_stores_of_both_kinds() -> None:
    context = MockProcessorContext({"default.key.serde": TEXT, "default.value.serde": TEXT})
    mine, theirs = Votes(), Stores.key_value_store_builder(Stores.in_memory_key_value_store("s")).build()
    mine.init(context.state_store_context, mine)
    theirs.init(context.state_store_context, theirs)
    context.add_state_store(mine)
    context.add_state_store(theirs)

    assert context.get_state_store("votes").vote("yes") == 1
    theirs["a"] = "b"
    assert context.get_state_store("s")["a"] == "b"
    assert mine.context.app_configs_with_prefix("application.") == {"id": context.application_id}


class Unregistered(Votes):
    def init(self, context: StateStoreContext, root: StateStore) -> None:
        pass


class RegisteredTwice(Votes):
    def init(self, context: StateStoreContext, root: StateStore) -> None:
        context.register(root, self.restored)
        context.register(root, self.restored)


class RegistersAnother(Votes):
    def init(self, context: StateStoreContext, root: StateStore) -> None:
        context.register(Votes(), self.restored)


class RegistersNothing(Votes):
    def init(self, context: StateStoreContext, root: StateStore) -> None:
        context.register(root, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (Unregistered, ProcessorStateError, r"'votes' of task .* did not register itself; call context\.register"),
        (RegisteredTwice, ValueError, "'votes' is registered already; call context.register once"),
        (RegistersAnother, ValueError, "register the root that init was given"),
        (RegistersNothing, TypeError, "restore callback of store 'votes' is None"),
    ],
)
def test_store_must_register_itself_once(
    opening: Context, kind: type[Votes], error: type[Exception], message: str
) -> None:
    store = UserStore(kind())

    with pytest.raises(error, match=message):
        store.init(opening)


def test_supplier_must_give_a_store_of_its_name() -> None:
    class Other(Votes):
        name = "other"

    with pytest.raises(ValueError, match="supplier of store 'votes' gave a store named 'other'"):
        StoreBuilder(VotesSupplier(Other)).build()
    with pytest.raises(TypeError, match="expected an object of a class derived from StateStore"):
        StoreBuilder(VotesSupplier(dict)).build()  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="take a builder of Stores"):
        StoreBuilder(Stores.in_memory_key_value_store("s")).build()
    with pytest.raises(ValueError, match="'votes' is a store of your own, which has no record cache"):
        StoreBuilder(VotesSupplier(), caching=True).build()


@pytest.mark.slow
def test_worker_restores_a_users_store_from_its_changelog(embedded_cluster: EmbeddedCluster, tmp_path: Path) -> None:
    made: list[Votes] = []

    class Seen(Votes):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    embedded_cluster.create_topics("in", "out")
    producer = Producer({"bootstrap.servers": embedded_cluster.bootstrap_servers})
    topology = counting(StoreBuilder(VotesSupplier(Seen)))
    config = {
        **settings(),
        "application.id": "votes-app",
        "bootstrap.servers": embedded_cluster.bootstrap_servers,
        "state.dir": str(tmp_path),
        "commit.interval.ms": 100,
        **SHORT_SESSION,
    }

    def total() -> int:
        return sum(store.counts.get(b"yes", 0) for store in made)

    def run_until(expected: int) -> None:
        made.clear()
        producer.produce("in", b"yes", key=b"k")
        assert producer.flush(10) == 0
        clock = SystemClock()
        deadline = clock.monotonic() + 60
        with KafkaStreams(topology, config) as streams:
            while total() < expected and clock.monotonic() < deadline:
                streams.wait(50)
            assert total() == expected
            streams.close(30_000, group_membership=GroupMembershipOperation.LEAVE_GROUP)

    run_until(1)
    run_until(2)
