"""Tasks of a topology behind an ASGI application, without workers and brokers, and a client for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import orjson

from pykstreams.core.errors import ClusterError
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import Metric, MetricName
from pykstreams.http.access import Access
from pykstreams.http.asgi import HttpApp, app
from pykstreams.http.asked_keys import AskedKey, asked_key
from pykstreams.http.exchange import HttpAnswer, HttpRequest
from pykstreams.http.options import HttpOptions
from pykstreams.runtime.health import Health, TaskHealth
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.queries.lags import LagInfo
from pykstreams.runtime.queries.local import LocalQueries
from pykstreams.runtime.queries.metadata import StreamsMetadata
from pykstreams.runtime.tasks.dropped import NodeDrops
from pykstreams.runtime.worker.thread_metadata import ThreadMetadata
from pykstreams.testing.clock import MockClock
from pykstreams.topology.description import TopologyDescription
from tests.unit.runtime.queries.queried import Application


class Streams:
    """Stands for the ``KafkaStreams`` of some tasks."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.state = State.RUNNING
        self.is_paused = False
        self.tasks = {TaskId(0, 0): TaskHealth(True, 0)}
        self.stuck: dict[str, int] = {}
        self.lags: dict[str, dict[int, LagInfo]] = {}
        self.brokers_fail: ClusterError | None = None
        self.threads: list[ThreadMetadata] = []

    @property
    def application_id(self) -> str:
        return self.application.config.application_id

    @property
    def local_queries(self) -> LocalQueries:
        return self.application.queries

    def describe(self) -> TopologyDescription:
        return self.application.topology.describe()

    def metrics(self) -> dict[MetricName, Metric]:
        return self.application.metrics.metrics()

    def dropped_records(self) -> dict[TaskId, Mapping[str, NodeDrops]]:
        return {task.id: task.dropped.by_node() for task in self.application.tasks()}

    def metadata_for_local_threads(self) -> list[ThreadMetadata]:
        return self.threads

    def health(self) -> Health:
        alive = self.state not in (State.PENDING_ERROR, State.ERROR) and not self.stuck
        ready = self.state is State.RUNNING and not self.stuck
        return Health(alive, ready, self.state, self.tasks, self.stuck)

    def all_local_store_partition_lags(self) -> dict[str, dict[int, LagInfo]]:
        if self.brokers_fail is not None:
            raise self.brokers_fail
        return self.lags

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        return self.application.queries.streams_metadata()


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def problem(self) -> str:
        """The kind of a problem, which must have all that a problem has."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json.keys() >= {"type", "title", "status", "detail", "instance"}
        assert self.json["status"] == self.status
        assert "Traceback" not in self.body.decode()
        return str(self.json["type"]).rpartition(":")[2]


class Replies:
    """Takes what questions for keys are answered between two batches."""

    def __init__(self) -> None:
        self.answers: dict[int, HttpAnswer] = {}
        self.left: list[int] = []
        """Those that were left to the way that waits."""

    def take(self, number: int, answer: HttpAnswer) -> None:
        assert number not in self.answers
        assert number not in self.left, "it is answered, or left to the other way"
        self.answers[number] = answer

    def otherwise(self, number: int) -> None:
        assert number not in self.answers, "it is answered, or left to the other way"
        self.left.append(number)

    def send(self) -> None:
        """The test looks at them."""


def lookups(*paths: str) -> list[tuple[int, AskedKey]]:
    """The questions for keys of one store that requests are, numbered from 0."""
    asked = [asked_key(HttpRequest(path, path, "", "")) for path in paths]
    return [(number, one) for number, one in enumerate(asked) if one is not None]


class Client:
    """Asks an ASGI application in this process; ``short``: how many questions were answered the short way, too."""

    def __init__(self, served: HttpApp, clock: MockClock | None = None, token: str | None = None) -> None:
        self.app = served
        self.access = Access(token)
        self.clock = clock
        self.short = 0

    def get(self, target: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answered:
        """The answer, which is the same on the short way between two batches, if it goes that way."""
        answer = asyncio.run(self.ask(target, headers or {}, method))
        if method == "GET" and (short := self._short(target, headers or {})) is not None:
            self.short += 1
            assert (short.status, dict(short.headers), short.body) == (
                answer.status,
                {name: text for name, text in answer.headers.items() if name != "content-length"},
                answer.body,
            )
        return answer

    def _short(self, target: str, headers: Mapping[str, str]) -> HttpAnswer | None:
        if not isinstance(self.app, HttpApp):  # mounted in another one, which has one way only
            return None
        parts, replies = urlsplit(target), Replies()
        path = unquote(parts.path)
        key = asked_key(HttpRequest(path, path, parts.query, ""))
        if key is None or not self.access.allows(headers.get("authorization", "")):
            return None
        self.app.answers.look_up(key.store, [(0, key)], replies)
        return replies.answers.get(0)

    async def ask(self, target: str, headers: Mapping[str, str], method: str = "GET") -> Answered:
        parts = urlsplit(target)
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "root_path": "",
            "query_string": parts.query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        sent: list[Any] = []

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answered(sent[0]["status"], told, b"".join(one.get("body", b"") for one in sent[1:]))


def client_of(application: Application, **options: Any) -> Client:
    """A client of the ASGI application over some tasks."""
    clock = MockClock(0)
    chosen = HttpOptions(**options)
    return Client(app(Streams(application), options=chosen, clock=clock), clock, chosen.token)
