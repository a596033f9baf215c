"""Stores of an application on a real broker, asked while records flow, over a restart, and when it has stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, Message

from pykstreams import Consumed, Grouped, Materialized, QueryableStoreTypes, Serdes, State, Stores, StreamsBuilder
from pykstreams.cli.app import cli
from pykstreams.core.errors import InvalidStateStoreError, StateStoreMigratedError, StreamsRebalancingError
from pykstreams.query import KeyQuery, Position, PositionBound, RangeQuery, VersionedKeyQuery
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from tests.brokers.producers import producer_in_order

pytestmark = pytest.mark.slow

TEXT = Serdes.string()
PARTITIONS, ROUNDS, KEYS = 2, 300, [f"product-{number}" for number in range(40)]
PATIENCE_S = 180.0
LEAVE = GroupMembershipOperation.LEAVE_GROUP
DAY = 86_400_000


def shop(topic: str) -> StreamsBuilder:
    """The prices of products with their history, and how often each was changed."""
    builder = StreamsBuilder()
    stream = builder.stream(topic, Consumed(key_serde=TEXT, value_serde=TEXT))
    stream.to_table(materialized=Materialized(Stores.persistent_versioned_key_value_store("prices", 1000 * DAY)))
    stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).count(materialized=Materialized("changes"))
    return builder


def eventually(read: Callable[[], object], expected: object) -> None:
    """Asks until the answer is right; a rebalance is no answer."""
    deadline = time.monotonic() + PATIENCE_S
    found: object = None
    while time.monotonic() < deadline:
        try:
            found = read()
        except StreamsRebalancingError as error:
            found = error
        if found == expected:
            return
        time.sleep(0.02)
    raise AssertionError(found)


def test_stores_are_read_while_records_flow_and_over_a_restart(
    bootstrap_servers: str, make_name: Callable[[str], str], make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, name = make_topic("changes", partitions=PARTITIONS), make_name("shop")
    config = {
        "application.id": name,
        "bootstrap.servers": bootstrap_servers,
        "state.dir": str(tmp_path),
        "commit.interval.ms": "300",
        "num.stream.threads": "2",
        "default.key.serde": TEXT,
        "default.value.serde": TEXT,
    }
    producer = producer_in_order(bootstrap_servers)
    delivered: list[tuple[int, int]] = []

    def was_delivered(error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None, error
        delivered.append((partition, offset))

    def send(number: int) -> None:
        for key in KEYS:
            producer.produce(
                topic,
                key=key.encode(),
                value=str(number).encode(),
                timestamp=(number + 1) * DAY,
                on_delivery=was_delivered,
            )
            producer.poll(0)

    def send_all() -> None:
        for number in range(ROUNDS):
            send(number)
        assert producer.flush(60) == 0

    first = KafkaStreams(shop(topic).build(), config)
    with first:
        assert first.wait_for_state(State.RUNNING, 60_000)
        writer = threading.Thread(target=send_all)
        writer.start()
        changes = first.store("changes", QueryableStoreTypes.KEY_VALUE_STORE)
        last: dict[str, int] = {}
        while writer.is_alive():
            try:
                with changes.all() as rows:
                    seen = dict(rows)
            except (StateStoreMigratedError, StreamsRebalancingError):  # tasks move right now: ask again
                continue
            gone_back = {key: (last[key], count) for key, count in seen.items() if count < last.get(key, 0)}
            assert not gone_back  # a partition may be missing while its task goes from one worker to the other
            last |= seen
        writer.join()
        eventually(lambda: [changes.get(key) for key in KEYS], [ROUNDS] * len(KEYS))
        prices = first.store("prices", QueryableStoreTypes.VERSIONED_KEY_VALUE_STORE)
        price = prices.get(KEYS[0], as_of=7 * DAY)
        assert price is not None
        assert price.value == "6"
        position = Position()
        for partition, offset in delivered:
            position.with_component(topic, partition, offset)
        answer = first.query("changes", KeyQuery(KEYS[0]), position_bound=PositionBound.at(position))
        assert answer.only_partition_result is not None
        assert answer.only_partition_result.result == ROUNDS
        left_open = changes.all()
        next(left_open)
        assert first.close(60_000, group_membership=LEAVE)
        with pytest.raises(InvalidStateStoreError):
            changes.get(KEYS[0])
        with left_open, pytest.raises(StateStoreMigratedError, match="store 'changes' of task 0_1 is not open"):
            list(left_open)

    (tmp_path / "shop.py").write_text(
        f"from tests.integration.test_interactive_queries import shop, TEXT\ndef build():\n    return shop({topic!r})\n"
        "config = {'default.key.serde': TEXT, 'default.value.serde': TEXT}\n"
    )
    command = ["state", "get", str(tmp_path / "shop.py"), "prices", KEYS[0], "--as-of", str(7 * DAY)]
    shown = CliRunner().invoke(cli, [*command, "--application-id", name, "--state-dir", str(tmp_path)])
    assert shown.output.startswith("6  (of 1970-01-08T00:00:00.000Z, partition "), shown.output

    second = KafkaStreams(shop(topic).build(), config)
    with second:
        bound = PositionBound.at(position)

        def after_restart() -> object:
            found = second.query("changes", RangeQuery[str, int](), position_bound=bound)
            rows: list[tuple[str, object]] = []
            for one in found.partition_results.values():
                if one.is_failure:
                    rows.append(("", one.failure_message))
                else:
                    with one.result as iterator:
                        rows += iterator
            return sorted(rows)

        eventually(after_restart, sorted((key, ROUNDS) for key in KEYS))
        eventually(lambda: second.state, State.RUNNING)
        old = second.query("prices", VersionedKeyQuery(KEYS[1], as_of=7 * DAY)).only_partition_result
        assert old is not None
        assert old.result is not None
        assert old.result.value == "6"
        locked = CliRunner().invoke(cli, [*command, "--application-id", name, "--state-dir", str(tmp_path)])
        assert locked.exit_code == 5
        assert second.close(60_000, group_membership=LEAVE)
