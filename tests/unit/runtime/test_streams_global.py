"""KafkaStreams with global stores on an embedded cluster: when it runs, and what becomes of failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from pykstreams import Processor, Serdes, StreamsBuilder
from pykstreams.core.errors import StreamsError
from pykstreams.core.handlers import StreamThreadExceptionResponse
from pykstreams.core.record import Record
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.global_stores.global_thread import GlobalThread
from pykstreams.runtime.health import Health
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from pykstreams.state import Stores

TEXT = Serdes.string()
LEAVE = GroupMembershipOperation.LEAVE_GROUP


class PutUnlessBad(Processor[str, str, Any, Any]):
    """Puts each record into the store ``kv``, and fails at ``bad``."""

    def process(self, record: Record[str, str]) -> None:
        if record.value == "bad":
            raise RuntimeError("a bad value")
        self.context.get_state_store("kv").put(record.key, record.value)


@pytest.fixture
def make(embedded_cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Callable[..., KafkaStreams]]:
    made: list[KafkaStreams] = []

    def build(*, tasks: bool = False, **more: Any) -> KafkaStreams:
        builder = StreamsBuilder()
        store = Stores.key_value_store_builder(Stores.persistent_key_value_store("kv"), TEXT, TEXT)
        builder.add_global_store(store, "feed", PutUnlessBad)
        if tasks:
            builder.stream("orders").foreach(lambda key, value: None)
        config = {
            "application.id": "shop",
            "bootstrap.servers": embedded_cluster.bootstrap_servers,
            "state.dir": str(tmp_path),
            "default.key.serde": TEXT,
            "default.value.serde": TEXT,
        }
        made.append(KafkaStreams(builder.build(), config, **more))
        return made[-1]

    yield build
    for streams in made:
        streams.close(20_000, group_membership=LEAVE)


def send(cluster: EmbeddedCluster, value: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("feed", value.encode(), key=b"k", partition=0)
    assert producer.flush(10) == 0


def test_application_of_global_stores_alone_runs_without_workers(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster
) -> None:
    send(embedded_cluster, "v")
    heard: list[State] = []
    streams = make(state_listener=lambda new, old: heard.append(new))
    streams.start()
    assert streams.close(20_000)

    assert heard == [State.REBALANCING, State.RUNNING, State.PENDING_SHUTDOWN, State.NOT_RUNNING]


def test_record_that_a_global_store_cannot_take_is_an_error_of_start(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster
) -> None:
    send(embedded_cluster, "bad")
    streams = make()

    with pytest.raises(StreamsError, match=r"a processor of global stores failed at record feed-0 offset 0"):
        streams.start()
    assert streams.state is State.ERROR


@pytest.mark.parametrize("tasks", [False, True])
def test_failure_of_a_global_store_ends_the_application_whatever_the_handler_says(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster, tasks: bool
) -> None:
    asked: list[BaseException] = []

    def replace(error: BaseException) -> StreamThreadExceptionResponse:
        asked.append(error)
        return StreamThreadExceptionResponse.REPLACE_THREAD

    streams = make(tasks=tasks, uncaught_exception_handler=replace)
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 20_000)
    send(embedded_cluster, "bad")

    assert streams.wait(60_000) is State.ERROR
    assert asked == [streams.error]
    assert "feed-0 offset 0" in str(streams.error)


def test_handler_that_fails_does_not_keep_an_application_without_its_global_stores_going(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster
) -> None:
    def failing(error: BaseException) -> StreamThreadExceptionResponse:
        raise LookupError("nobody to page")

    streams = make(uncaught_exception_handler=failing)
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 20_000)
    send(embedded_cluster, "bad")

    assert streams.wait(60_000) is State.ERROR
    assert "feed-0 offset 0" in str(streams.error)


def test_handler_of_a_failed_global_store_may_close_the_application(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster
) -> None:
    closed: list[bool] = []

    def close_from_the_handler(error: BaseException) -> StreamThreadExceptionResponse:
        closed.append(streams.close(20_000))
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT

    streams = make(uncaught_exception_handler=close_from_the_handler)
    streams.start()
    send(embedded_cluster, "bad")

    assert streams.wait(60_000).has_completed_shutdown
    assert "feed-0 offset 0" in str(streams.error)


def test_application_is_alive_and_not_ready_until_its_global_stores_are_read(
    make: Callable[..., KafkaStreams], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, found, read = make(), list[Health](), GlobalThread._restore_to_ends

    def note(keeper: GlobalThread, reader: Any) -> None:
        found.append(streams.health())
        read(keeper, reader)

    monkeypatch.setattr(GlobalThread, "_restore_to_ends", note)
    streams.start()
    found.append(streams.health())

    assert found == [Health(True, False, State.REBALANCING, {}), Health(True, True, State.RUNNING, {})]


def test_closing_while_global_stores_are_read_gives_up_reading(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = make()
    told: list[bool] = []

    def read_until_told(keeper: GlobalThread, reader: object) -> None:
        streams._stop_requested = True
        told.append(keeper._stopping.wait(60))

    monkeypatch.setattr(GlobalThread, "_restore_to_ends", read_until_told)

    streams.start()

    assert streams.state is State.NOT_RUNNING
    assert told == [True]


def test_cleaning_up_deletes_global_stores(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    send(embedded_cluster, "v")
    streams = make()
    streams.start()
    streams.close(20_000)
    kept = (tmp_path / "pykstreams" / "shop" / "global-0" / "checkpoint.json").exists()
    streams.clean_up()

    assert kept
    assert not (tmp_path / "pykstreams" / "shop" / "global-0").exists()
