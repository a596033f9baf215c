"""KafkaStreams on an embedded cluster: its states, what start refuses, what becomes of failures."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from pykstreams import Consumed, Serdes, StreamsBuilder
from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import ClusterError, ConfigError, StreamsError
from pykstreams.core.handlers import StreamThreadExceptionResponse
from pykstreams.core.ids import TaskId
from pykstreams.runtime import streams as module
from pykstreams.runtime.application import Application
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.health import Health, TaskHealth
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from pykstreams.runtime.worker.worker import Worker
from tests.brokers.quick_cluster import SHORT_SESSION

TEXT = Serdes.string()
LEAVE = GroupMembershipOperation.LEAVE_GROUP
PATIENCE_S = 60.0


@pytest.fixture
def make(embedded_cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Callable[..., KafkaStreams]]:
    made: list[KafkaStreams] = []

    def build(function: Callable[[str], Any] = str, **more: Any) -> KafkaStreams:
        builder = StreamsBuilder()
        stream = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT))
        stream.map_values(function).foreach(lambda key, value: None)
        config = {
            "application.id": "shop",
            "bootstrap.servers": embedded_cluster.bootstrap_servers,
            "state.dir": str(tmp_path),
            **SHORT_SESSION,
            **more.pop("settings", {}),
        }
        made.append(KafkaStreams(builder.build(), config, **more))
        return made[-1]

    yield build
    for streams in made:
        streams.close(20_000, group_membership=LEAVE)


def send(cluster: EmbeddedCluster, value: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("orders", value.encode(), key=b"k", partition=0)
    assert producer.flush(10) == 0


def test_states_follow_each_other_and_the_listener_hears_them(make: Callable[..., KafkaStreams]) -> None:
    heard: list[tuple[State, State]] = []
    streams = make(state_listener=lambda new, old: heard.append((new, old)))
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 20_000)
    health = streams.health()
    assert streams.close(20_000, group_membership=LEAVE)

    assert [new for new, _ in heard] == [State.REBALANCING, State.RUNNING, State.PENDING_SHUTDOWN, State.NOT_RUNNING]
    assert (health.alive, health.ready) == (True, True)
    assert health.tasks == {TaskId(0, number): TaskHealth(True, 0) for number in range(4)}


def test_failing_user_code_ends_in_error_with_its_reason(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster
) -> None:
    send(embedded_cluster, "no number")
    streams = make(int)
    streams.start()

    assert streams.wait(60_000) is State.ERROR
    assert "record orders-0 offset 0" in str(streams.error)
    assert not streams.health().alive


def test_an_application_is_not_ready_while_the_handler_of_a_failed_worker_takes_its_time(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster
) -> None:
    """Its worker is gone by then, and who pages somebody may have to wait."""
    found: list[Health] = []

    def page(error: BaseException) -> StreamThreadExceptionResponse:
        found.append(streams.health())
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT

    streams = make(int, uncaught_exception_handler=page)
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 20_000)
    send(embedded_cluster, "no number")
    assert streams.wait(60_000) is State.ERROR

    assert found == [Health(True, False, State.RUNNING, {})]


def nothing(error: BaseException) -> None:
    """A handler that forgets to answer."""


def failing(error: BaseException) -> StreamThreadExceptionResponse:
    """A handler that fails."""
    raise LookupError("nobody to page")


@pytest.mark.parametrize(
    ("handler", "said"), [(nothing, "it returned None; expected a Stream"), (failing, "nobody to page")]
)
def test_a_handler_that_fails_stops_the_application_with_the_error_of_the_worker(
    make: Callable[..., KafkaStreams],
    embedded_cluster: EmbeddedCluster,
    caplog: pytest.LogCaptureFixture,
    handler: Callable[[BaseException], StreamThreadExceptionResponse],
    said: str,
) -> None:
    send(embedded_cluster, "no number")
    streams = make(int, uncaught_exception_handler=handler)
    streams.start()

    assert streams.wait(60_000) is State.ERROR
    assert "record orders-0 offset 0" in str(streams.error)
    assert "the uncaught exception handler failed; the application stops (SHUTDOWN_CLIENT)" in caplog.text
    assert said in caplog.text


def test_a_state_listener_that_fails_does_not_hold_the_application_up(
    make: Callable[..., KafkaStreams], caplog: pytest.LogCaptureFixture
) -> None:
    def listener(new: State, old: State) -> None:
        raise LookupError("nobody to tell")

    streams = make(state_listener=listener)
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 20_000)

    assert streams.close(20_000, group_membership=LEAVE)
    assert streams.state is State.NOT_RUNNING
    assert "its state listener failed at running -> pending_shutdown" in caplog.text


@pytest.mark.parametrize("is_started", [False, True])
def test_a_part_that_cannot_be_closed_does_not_keep_the_application_from_its_end(
    make: Callable[..., KafkaStreams],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    is_started: bool,
) -> None:
    def close(application: Application) -> None:
        raise OSError("the disk is gone")

    streams = make()
    if is_started:
        streams.start()
        assert streams.wait_for_state(State.RUNNING, 20_000)
    with monkeypatch.context() as patched:
        patched.setattr(Application, "close", close)

        assert streams.close(20_000, group_membership=LEAVE)

    assert streams.state is State.NOT_RUNNING
    assert str(streams.error) == "the disk is gone"
    assert "closing a part of the application failed: the disk is gone" in caplog.text


@pytest.mark.parametrize("is_closed", [False, True])
def test_workers_that_end_before_all_have_started_leave_the_start_without_an_error_of_its_own(
    make: Callable[..., KafkaStreams], monkeypatch: pytest.MonkeyPatch, is_closed: bool
) -> None:
    streams = make(settings={"num.stream.threads": 2})
    failure, build = StreamsError("the first one"), streams._application.worker
    made: list[Worker] = []

    def worker(*args: Any) -> Worker:
        if made:
            streams.wait(20_000)
        made.append(build(*args))
        if is_closed:
            streams.close(0)
        else:
            made[0].fail(failure)
        return made[0]

    monkeypatch.setattr(streams._application, "worker", worker)
    streams.start()

    assert streams.wait(20_000) is (State.NOT_RUNNING if is_closed else State.ERROR)
    assert streams.error is (None if is_closed else failure)


@pytest.mark.slow
def test_failed_worker_is_replaced_when_the_handler_says_so(
    make: Callable[..., KafkaStreams], embedded_cluster: EmbeddedCluster
) -> None:
    calls: list[str] = []

    def once(value: str) -> str:
        calls.append(value)
        if len(calls) == 1:
            raise RuntimeError("the first time only")
        return value

    send(embedded_cluster, "v")
    streams = make(once, uncaught_exception_handler=lambda error: StreamThreadExceptionResponse.REPLACE_THREAD)
    streams.start()
    clock = SystemClock()
    deadline = clock.monotonic() + 60
    while len(calls) < 2:
        assert clock.monotonic() < deadline, streams.state
        streams.wait(50)

    assert streams.wait_for_state(State.RUNNING, 20_000)
    assert streams.error is None


def test_an_application_says_its_name_and_state(make: Callable[..., KafkaStreams]) -> None:
    streams = make()
    assert repr(streams) == "<KafkaStreams 'shop' CREATED>"

    streams.close()

    assert repr(streams) == "<KafkaStreams 'shop' NOT_RUNNING>"


def test_closing_before_the_start_is_the_end(make: Callable[..., KafkaStreams]) -> None:
    streams = make()

    assert streams.close()
    assert streams.state is State.NOT_RUNNING
    with pytest.raises(StreamsError, match=r"^the application is not_running and cannot be started; .* make a new"):
        streams.start()


def test_cluster_that_is_down_is_an_error_of_start(make: Callable[..., KafkaStreams]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        streams = make(settings={"bootstrap.servers": address, "task.timeout.ms": 300})

        with pytest.raises(ClusterError, match=f"no broker answered at {address} within 0.3 s"):
            streams.start()

    assert streams.state is State.ERROR


def test_run_raises_what_start_raised(make: Callable[..., KafkaStreams]) -> None:
    streams = make(settings={"bootstrap.servers": "127.0.0.1:1", "task.timeout.ms": 300})

    with pytest.raises(ClusterError, match="no broker answered"):
        streams.run()


def test_run_raises_the_limit_of_open_files(make: Callable[..., KafkaStreams], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(module, "allow_open_files", lambda: calls.append("raised"))
    streams = make(settings={"bootstrap.servers": "127.0.0.1:1", "task.timeout.ms": 0})

    with pytest.raises(ClusterError, match="no broker answered"):
        streams.run()

    assert calls == ["raised"]


def test_settings_that_have_no_effect_are_told_at_the_start(
    make: Callable[..., KafkaStreams], caplog: pytest.LogCaptureFixture
) -> None:
    streams = make(
        settings={
            "bootstrap.servers": "127.0.0.1:1",
            "task.timeout.ms": 0,
            "group.protocol": "streams",
            "num.standby.replicas": 1,
        }
    )

    with pytest.raises(ClusterError, match="no broker answered"):
        streams.start()

    assert "num.standby.replicas has no effect with group.protocol=streams" in caplog.text


def test_a_worker_that_remains_in_a_function_is_named_and_given_up(
    make: Callable[..., KafkaStreams],
    embedded_cluster: EmbeddedCluster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    inside, over = threading.Event(), threading.Event()

    def hangs(value: str) -> str:
        inside.set()
        over.wait(PATIENCE_S)
        return value

    monkeypatch.setattr(module, "_STOP_LOOK_S", 0.05)
    monkeypatch.setattr(module, "_STOP_S", 0.2)
    send(embedded_cluster, "tea")
    streams = make(hangs)

    def stop() -> None:
        inside.wait(PATIENCE_S)
        streams._request_stop()

    stopping = threading.Thread(target=stop)
    stopping.start()
    try:
        with pytest.raises(StreamsError, match=r"StreamThread-1 did not stop within 0\.2 s, being busy with one turn"):
            streams.run()
    finally:
        over.set()
        stopping.join()

    assert "StreamThread-1 has been busy with one turn for" in caplog.text


def test_embedded_cluster_refuses_exactly_once(make: Callable[..., KafkaStreams]) -> None:
    streams = make(settings={"processing.guarantee": "exactly_once_v2"})

    with pytest.raises(ConfigError, match="an embedded cluster has no transactions"):
        streams.start()


def test_state_is_not_cleaned_up_under_a_running_application(make: Callable[..., KafkaStreams]) -> None:
    streams = make()
    streams._life.move(State.REBALANCING)

    with pytest.raises(StreamsError, match=r"^the application is rebalancing; clean up before it starts"):
        streams.clean_up()


@pytest.mark.parametrize("state", list(State))
def test_final_states_lead_nowhere(state: State) -> None:
    following = [new for new in State if state.is_valid_transition(new)]

    assert (following == []) == state.has_completed_shutdown


def test_a_bootstrap_is_not_loaded_into_an_embedded_cluster_nor_into_one_that_has_stopped(
    make: Callable[..., KafkaStreams], tmp_path: Path
) -> None:
    streams = make()
    load = streams.load_bootstrap(tmp_path / "made")
    assert load.waiting is None
    with pytest.raises(
        ConfigError, match="loaded into a running application in a transaction, and an embedded cluster"
    ):
        streams.start()
    assert streams.wait(60_000) is State.ERROR

    with pytest.raises(StreamsError, match=r"the application is error, and has no tasks to load a bootstrap into"):
        streams.load_bootstrap(tmp_path / "made")


def test_a_builder_in_place_of_a_topology_is_refused_with_what_to_call() -> None:
    builder: Any = StreamsBuilder()

    with pytest.raises(TypeError, match=r"StreamsBuilder.*; expected a Topology.* give builder\.build\(\)"):
        KafkaStreams(builder, {"application.id": "shop", "bootstrap.servers": "nowhere:1"})
