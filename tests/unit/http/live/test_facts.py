"""The facts of the live page: what an instance tells of itself, and of the others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pykstreams import Consumed, Grouped, Serdes, StreamsBuilder, TimeWindows
from pykstreams.core.errors import ClusterError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.http import staleness
from pykstreams.http.asgi import app
from pykstreams.http.live.log_lines import LogLines
from pykstreams.http.options import HttpOptions
from pykstreams.runtime.health import TaskHealth
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.queries.lags import LagInfo
from pykstreams.runtime.worker.thread_metadata import TaskMetadata, ThreadMetadata
from pykstreams.testing.clock import MockClock
from tests.unit.http.served_application import Client, Streams
from tests.unit.runtime.queries.queried import TOPIC, Application

TEXT = Serdes.string()
PATIENCE_S = 60.0


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Streams]]:
    made: list[Application] = []

    def build(prepared: Callable[[Any], Any] = lambda stream: stream, **settings: Any) -> Streams:
        builder = StreamsBuilder()
        stream = prepared(builder.stream(TOPIC, Consumed(key_serde=TEXT, value_serde=TEXT)))
        stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).windowed_by(TimeWindows(10, grace=0)).count(
            materialized="counts"
        )
        made.append(Application(builder, tmp_path / str(len(made)), partitions=2, **settings).start())
        return Streams(made[-1])

    yield build
    for one in made:
        one.close()


def client(streams: Streams, **options: Any) -> Client:
    clock = MockClock(1_000)
    return Client(app(streams, options=HttpOptions(**options), clock=clock), clock)


def thread(*tasks: TaskMetadata, standbys: tuple[TaskMetadata, ...] = ()) -> ThreadMetadata:
    return ThreadMetadata(
        "RUNNING", "shop-StreamThread-1", frozenset(tasks), frozenset(standbys), "c", "r", frozenset({"p"}), "a"
    )


def task(number: int, committed: int, end: int, start: int = -1) -> TaskMetadata:
    place = TopicPartition(TOPIC, number)
    return TaskMetadata(TaskId(0, number), frozenset({place}), {place: committed}, {place: end}, None, {place: start})


def test_tasks_are_told_with_their_lag_and_what_they_lost(make: Callable[..., Streams]) -> None:
    streams = make()
    streams.tasks = {TaskId(0, 0): TaskHealth(True, 0), TaskId(0, 1): TaskHealth(False, 70)}
    streams.threads = [thread(task(0, 5, 12, 2), task(1, -1, 4, 0))]
    streams.application.feed(("a", "x", 5), ("a", "x", 50), ("a", "late", 5))

    told = client(streams).get("/live.json").json

    assert (told["application"], told["state"], told["ready"], told["now_ms"]) == ("shop", "running", True, 1_000)
    first, second = told["tasks"]
    assert (first["id"], first["running"], first["lag"], first["thread"]) == ("0_0", True, 7, "shop-StreamThread-1")
    assert (first["processed"], first["late"], first["dropped"], first["failed"]) == (3, 1, 1, 0)
    assert (second["id"], second["running"], second["remaining"], second["lag"]) == ("0_1", False, 70, 4)
    assert told["stores"] == [{"name": "counts", "kind": "window", "global": False}]


@pytest.mark.parametrize(("start", "lag"), [(1_000, 3), (1_003, 0), (-1, None)])
def test_lag_counts_from_where_reading_began_before_the_first_commit(
    make: Callable[..., Streams], start: int, lag: int | None
) -> None:
    """Else a partition that is read from its end, or whose first records were deleted, would be a million behind."""
    streams = make()
    streams.tasks = {TaskId(0, 0): TaskHealth(True, 0)}
    streams.threads = [thread(task(0, -1, 1_003, start))]

    (told,) = client(streams).get("/live.json").json["tasks"]

    assert told["lag"] == lag
    assert [(one["committed"], one["lag"]) for one in told["inputs"]] == [(-1, lag)]


def test_nodes_are_told_with_what_they_counted(make: Callable[..., Streams]) -> None:
    streams = make()
    streams.application.feed(("a", "x", 5), ("a", "x", 50), ("a", "late", 5))

    nodes = client(streams).get("/live.json").json["nodes"]

    assert nodes["KSTREAM-SOURCE-0000000000"]["consumed"] == 3
    assert nodes["KSTREAM-AGGREGATE-0000000001"] == {"dropped": 1, "late": 1, "failed": 0}


def test_records_that_failed_are_counted_at_their_node(make: Callable[..., Streams]) -> None:
    def read(value: str) -> str:
        raise ValueError(value)

    handler = "pykstreams:LogAndContinueProcessingExceptionHandler"
    streams = make(lambda stream: stream.map_values(read), settings={"processing.exception.handler": handler})
    streams.application.feed(("a", "x", 5))

    nodes = client(streams).get("/live.json").json["nodes"]

    assert nodes["KSTREAM-MAPVALUES-0000000001"] == {"dropped": 1, "late": 0, "failed": 1}


def test_standby_copies_are_told_with_how_far_they_are_behind(make: Callable[..., Streams]) -> None:
    streams = make()
    streams.application.keep_copy(1)
    streams.threads = [thread(task(0, 0, 0), standbys=(task(1, 0, 0),))]
    streams.lags = {"counts": {1: LagInfo(5, 12)}}

    told = client(streams).get("/live.json").json

    assert told["standbys"] == [{"store": "counts", "partition": 1, "lag": 7}]


def test_brokers_that_do_not_answer_hide_nothing_but_how_far_copies_are_behind(make: Callable[..., Streams]) -> None:
    streams = make()
    streams.application.keep_copy(1)
    streams.threads = [thread(task(0, 0, 0), standbys=(task(1, 0, 0),))]

    def away() -> dict[str, dict[int, LagInfo]]:
        raise ClusterError("the brokers are away")

    streams.all_local_store_partition_lags = away  # type: ignore[method-assign]

    answer = client(streams).get("/live.json")

    assert answer.status == 200
    assert answer.json["standbys"] == [{"store": "counts", "partition": 1, "lag": None}]


def test_silent_brokers_do_not_hold_up_whoever_looks(
    make: Callable[..., Streams], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, answering = make(), threading.Event()
    streams.application.keep_copy(1)
    streams.threads = [thread(task(0, 0, 0), standbys=(task(1, 0, 0),))]
    held: list[bool] = []

    def silent() -> dict[str, dict[int, LagInfo]]:
        held.append(answering.wait(PATIENCE_S))
        return {"counts": {1: LagInfo(5, 12)}}

    monkeypatch.setattr(streams, "all_local_store_partition_lags", silent)
    monkeypatch.setattr(staleness, "_PATIENCE_S", 0.0)
    try:
        assert [one["lag"] for one in client(streams).get("/live.json").json["standbys"]] == [None]
        assert held == []
    finally:
        answering.set()


def test_an_instance_that_starts_is_told_as_it_is(make: Callable[..., Streams]) -> None:
    streams = make()
    streams.state = State.REBALANCING

    told = client(streams).get("/live.json?instances=all").json

    assert [one["state"] for one in told["instances"]] == ["rebalancing"]
    assert not told["instances"][0]["ready"]


def test_an_instance_that_cannot_be_reached_is_told_with_the_reason(make: Callable[..., Streams]) -> None:
    streams = make(settings={"application.server": "127.0.0.1:9"})
    away = type(streams.metadata_for_all_streams_clients()[0])
    other = away(HostInfo("127.0.0.1", 1), frozenset({"counts"}), frozenset())
    streams.metadata_for_all_streams_clients = lambda: [other]  # type: ignore[method-assign]

    own, told = client(streams).get("/live.json?instances=all").json["instances"]

    assert own["instance"] == "127.0.0.1:9"
    assert told["instance"] == "127.0.0.1:1"
    assert "the instance at 127.0.0.1:1 was not reached" in told["error"]


def test_facts_and_drawing_need_the_token_and_the_page_does_not(make: Callable[..., Streams]) -> None:
    asked = client(make(), token="secret")

    statuses = {path: asked.get(path).status for path in ("/", "/live/page.js", "/live.json", "/live/topology.svg")}

    assert statuses == {"/": 200, "/live/page.js": 200, "/live.json": 401, "/live/topology.svg": 401}
    assert asked.get("/live.json", {"authorization": "Bearer secret"}).status == 200


def test_the_page_may_ask_nobody_but_its_server(make: Callable[..., Streams]) -> None:
    page = client(make()).get("/")

    policy = page.headers["content-security-policy"]

    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    assert b"http" not in page.body.replace(b"https", b"http").replace(b"http-equiv", b"")


def test_the_drawing_names_every_step_and_store(make: Callable[..., Streams]) -> None:
    drawing = client(make()).get("/live/topology.svg")

    assert drawing.headers["content-type"] == "image/svg+xml"
    for name in ("KSTREAM-SOURCE-0000000000", "KSTREAM-AGGREGATE-0000000001", "counts", TOPIC):
        assert f'data-name="{name}"'.encode() in drawing.body


def test_the_latest_lines_of_the_log_are_kept() -> None:
    lines, log = LogLines(2), logging.getLogger("pykstreams.somewhere")
    lines.attach()
    try:
        for number in range(3):
            log.warning("line %d", number)
    finally:
        lines.detach()
    log.warning("line 3")

    assert [(one["level"], one["text"]) for one in lines.lines()] == [("WARNING", "line 1"), ("WARNING", "line 2")]


def test_a_line_of_the_log_that_is_no_text_spoils_no_answer(
    make: Callable[..., Streams], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("pykstreams"), "propagate", False)  # pytest-xdist cannot send such a line
    asked = client(make())
    logging.getLogger("pykstreams.somewhere").warning("the file is %s", "\udcff")
    answer = asked.get("/live.json")
    asked.app.close()

    assert answer.status == 200
    assert answer.json["log"][-1]["text"] == "the file is \\udcff"


def test_an_error_in_the_log_is_told_in_one_line() -> None:
    lines, log = LogLines(), logging.getLogger("pykstreams.somewhere")
    lines.attach()
    try:
        try:
            raise ValueError("no such thing")
        except ValueError:
            log.exception("it failed")
    finally:
        lines.detach()

    assert [one["text"] for one in lines.lines()] == ["it failed: ValueError: no such thing"]
