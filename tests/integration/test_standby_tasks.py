"""Standby tasks on a real broker: one of two instances is killed, and the other has all but the last of its state."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pykstreams import Consumed, Grouped, Materialized, QueryableStoreTypes, Serdes, Stores, StreamsBuilder
from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process

pytestmark = pytest.mark.slow

TEXT = Serdes.string()
PARTITIONS, KEYS, TAIL = 4, 4000, 40
PATIENCE_S = 180.0
ROOT = Path(__file__).parents[2]

OTHER_INSTANCE = """
    import sys
    from tests.integration.test_standby_tasks import application
    application(*sys.argv[1:]).run()
"""


class Restored(StateRestoreListener):
    """Notes from where the stores of tasks that came here were restored, and how many records that took."""

    def __init__(self) -> None:
        self.begun: dict[int, int] = {}
        self.records = 0

    def on_restore_start(self, topic_partition: Any, store_name: str, starting_offset: int, ending_offset: int) -> None:
        self.begun[topic_partition.partition] = starting_offset

    def on_batch_restored(
        self, topic_partition: Any, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        self.records += num_restored


def application(brokers: str, name: str, topic: str, state_dir: str, kept: str, **more: Any) -> KafkaStreams:
    """Counts how often each key comes.

    :param kept: where the counts are kept, "on disk" or "in memory".
    """
    supplier: Any = "counts" if kept == "on disk" else Stores.in_memory_key_value_store("counts")
    builder = StreamsBuilder()
    builder.stream(topic, Consumed(key_serde=TEXT, value_serde=TEXT)).group_by_key(
        Grouped(key_serde=TEXT, value_serde=TEXT)
    ).count(materialized=Materialized(supplier))
    config = {
        "application.id": name,
        "bootstrap.servers": brokers,
        "state.dir": state_dir,
        "commit.interval.ms": "200",
        "num.standby.replicas": "1",
        "processing.guarantee": "exactly_once_v2",
        "application.server": f"{Path(state_dir).name}:1",
        "consumer.auto.offset.reset": "earliest",
    }
    return KafkaStreams(builder.build(), config, **more)


def counted(streams: KafkaStreams) -> Counter[str]:
    """What an instance knows of all tasks, its own and those that it keeps copies of."""
    try:
        with streams.store("counts", QueryableStoreTypes.KEY_VALUE_STORE, enable_stale_stores=True).all() as rows:
            return Counter(dict(rows))
    except InvalidStateStoreError:
        return Counter()


def wait_for(streams: KafkaStreams, expected: Counter[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := counted(streams)) != expected:
        assert time.monotonic() < deadline, (len(found), sum(found.values()), sum(expected.values()))
        time.sleep(0.05)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("kept", ["on disk", pytest.param("in memory", marks=pytest.mark.nightly)])
def test_an_instance_takes_over_from_one_that_was_killed_and_restores_only_what_its_copies_lack(
    bootstrap_servers: str,
    make_name: Callable[[str], str],
    make_topic: Callable[..., str],
    tmp_path: Path,
    stack: ExitStack,
    kept: str,
) -> None:
    topic, name = make_topic("orders", partitions=PARTITIONS), make_name("shop")
    producer = producer_in_order(bootstrap_servers, {"partitioner": "murmur2_random"})
    sent: Counter[str] = Counter()

    def send(keys: int) -> None:
        for number in range(keys):
            producer.produce(topic, key=f"key-{number}", value="order")
            sent[f"key-{number}"] += 1
        assert producer.flush(60) == 0

    restored = Restored()
    one = application(bootstrap_servers, name, topic, str(tmp_path / "one"), kept, state_restore_listener=restored)
    stack.callback(one.close, 30_000, group_membership=GroupMembershipOperation.LEAVE_GROUP)
    one.start()
    two = Process(
        [
            sys.executable,
            "-c",
            textwrap.dedent(OTHER_INSTANCE),
            bootstrap_servers,
            name,
            topic,
            str(tmp_path / "two"),
            kept,
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    stack.callback(two.wait)
    stack.callback(two.kill)
    send(KEYS)
    wait_until(lambda: shares(one) == (PARTITIONS // 2, PARTITIONS // 2))
    wait_for(one, sent)  # half of it by its tasks, the other half by its copies
    here, there = one.metadata_for_all_streams_clients()
    assert (here.host, there.host) == ("one", "two")
    assert (here.topic_partitions, there.topic_partitions) == (
        there.standby_topic_partitions,
        here.standby_topic_partitions,
    )
    assert here.standby_state_store_names == {"counts"}
    copied = {place.partition for place in here.standby_topic_partitions}
    restored.begun.clear()
    restored.records = 0

    send(TAIL)
    two.kill()
    wait_until(lambda: len(one.health().tasks) == PARTITIONS and one.health().ready)
    wait_for(one, sent)

    assert set(restored.begun) == copied
    assert min(restored.begun.values()) >= KEYS // PARTITIONS // 2
    assert restored.records <= TAIL


def shares(streams: KafkaStreams) -> tuple[int, int]:
    """How many partitions are those of its tasks, and how many those of its copies."""
    found = next(iter(streams.metadata_for_all_streams_clients()))
    return len(found.topic_partitions), len(found.standby_topic_partitions)


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)
