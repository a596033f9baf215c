"""The answers of an application to requests: health, stores, metrics, and their description."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

import orjson
from starlette.routing import compile_path

from pykstreams.core.clock import Clock
from pykstreams.core.types import AnyPartitioner
from pykstreams.http import parameters as named
from pykstreams.http.exchange import JSON, LIVE, READY, HttpAnswer, HttpRequest, json_answer
from pykstreams.http.live.page import LivePage
from pykstreams.http.openapi import described
from pykstreams.http.options import HttpOptions
from pykstreams.http.parameters import Given, Parameter
from pykstreams.http.problems import WRITE_UTF_8, ProblemError, problem_of, shown
from pykstreams.http.questions import ShortQuestion, ShownRow, body_of, fragment
from pykstreams.http.route import HttpRoute, Reply
from pykstreams.http.routing import Answer, Routing, parts_json
from pykstreams.http.served_application import ServedApplication
from pykstreams.http.short_reads import ShortReads
from pykstreams.http.staleness import Staleness
from pykstreams.http.store_routes import STORE_ROUTES, StoreRoute
from pykstreams.runtime.queries.catalog import StoreDescription
from pykstreams.runtime.queries.metadata import StreamsMetadata

_OF_ONE_ROW: Final = frozenset({"key", "as_of", "stale"})
"""The parameters of a question for one row that a worker answers between two batches."""

_OF_INSTANCES: Final = ("scope", "parts")
"""The parameter by which other instances ask."""

MetricsText = Callable[[], tuple[bytes, str]]
"""Returns the metrics as a body and its content type."""


class Answers:
    """Answers requests to an application; ``close`` ends its threads."""

    def __init__(
        self,
        streams: ServedApplication,
        options: HttpOptions,
        metrics: MetricsText | None,
        partitioners: Mapping[str, AnyPartitioner],
        clock: Clock,
    ) -> None:
        self._streams = streams
        self._options = options
        self._metrics = metrics
        staleness = Staleness(streams.all_local_store_partition_lags, clock)
        self._routing = Routing(streams.local_queries, options, staleness, partitioners, clock)
        self._short_reads = ShortReads(streams.local_queries, self._routing.me, partitioners)
        self._page = LivePage(streams, self._routing, staleness, clock)
        self._token = None if options.token is None else options.token.encode()
        self.routes = self._made()
        """All routes, in the order in which they are tried."""
        self._patterns = [
            (_pattern(one.path), one, _of_query(one.parameters), _of_query((*one.parameters, *one.among_instances)))
            for one in self.routes
        ]

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        """Answers a request; every error becomes a JSON problem."""
        try:
            route, given = self._found(request)
            return await route.handler(given)
        except Exception as error:
            return problem_of(error, request.path).answer(request.path)

    def begin(self, requests: Iterable[tuple[HttpRequest, Reply]], send: Callable[[], None]) -> None:
        """Answers requests for what tasks of this process have, without waiting until their batches are done.

        Replies are given the answers, here, or later in the worker's thread, which calls ``send`` then; errors are JSON
        problems. Any other request is left to be answered ``otherwise``: only ``answer`` answers it.
        """
        reads: dict[str, list[_Read]] = {}
        for request, reply in requests:
            try:
                route, given = self._found(request)
                question = None if route.short is None else route.short(given)
            except Exception as error:
                reply(problem_of(error, request.path).answer(request.path))
                continue
            if question is None:
                reply.otherwise()
            else:
                reads.setdefault(question.store.name, []).append(_Read(question, given, reply))
        for some in reads.values():
            self._short_reads.begin(some[0].question.store, some, send)

    def close(self) -> None:
        """Ends its threads when they have done what they do; questions are refused from then on."""
        self._page.close()
        self._routing.close()

    def openapi(self) -> dict[str, object]:
        """The OpenAPI 3.1 description."""
        return described(self.routes, token=self._token is not None)

    def _made(self) -> list[HttpRoute]:
        routes = [
            *map(self._store_route, STORE_ROUTES),  # first, since they are asked most
            *self._page.routes(),
            HttpRoute(
                LIVE,
                "live",
                "200 unless the application has failed, or a worker is stuck: restart it.",
                self._live,
                open=True,
            ),
            HttpRoute(
                READY,
                "ready",
                "200 when every task runs and no worker is stuck, with their progress.",
                self._ready,
                open=True,
            ),
            HttpRoute("/openapi.json", "openapi", "This description.", self._described),
            HttpRoute("/instances", "instances", "The instances of the group, with their stores.", self._instances),
            HttpRoute("/stores", "stores", "The stores and their kinds.", self._stores),
            HttpRoute("/stores/{store}", "store", "A store, with its partitions here.", self._store, (named.STORE,)),
        ]
        if self._metrics is not None:
            content = {"text/plain": {"schema": {"type": "string"}}}
            routes.append(HttpRoute("/metrics", "metrics", "The metrics, for Prometheus.", self._told, content=content))
        return routes

    def _store_route(self, route: StoreRoute) -> HttpRoute:
        def written(answer: Answer, given: Given) -> HttpAnswer:
            if given.scope == "parts":
                return json_answer(parts_json(answer))
            return _one(answer, given) if route.single else _rows(answer)

        async def handler(given: Given) -> HttpAnswer:
            question = route.asked_of(self._store_of(given), given)
            return written(await self._routing.answer(question, given.asked(self._options)), given)

        def short(given: Given) -> ShortQuestion | None:
            question = route.asked_of(self._store_of(given), given)
            if not isinstance(question, ShortQuestion) or not given.query.keys() <= _OF_ONE_ROW:
                return None
            given.stale(self._options)  # to refuse what is none; what a task has that runs is never stale
            return question

        schema = {"$ref": f"#/components/schemas/{'value' if route.single else 'rows'}"}
        parameters = (named.STORE, *route.parameters, *named.COMMON)
        content = {JSON: {"schema": schema}}
        return HttpRoute(
            route.path,
            route.name,
            route.summary,
            handler,
            parameters,
            among_instances=(named.LIMIT,) if route.single else (),
            content=content,
            short=short if route.single else None,
        )

    def _found(self, request: HttpRequest) -> tuple[HttpRoute, Given]:
        """The route of a request, and its parameters; a ``ProblemError`` for a request that none of them takes."""
        for pattern, route, known, known_of_instances in self._patterns:
            if (found := pattern.fullmatch(request.place)) is None:
                continue
            if not route.open:
                self._check_token(request)
            query = _pairs(request.query)
            if _OF_INSTANCES in query:
                known = known_of_instances
            return route, Given(request.path, found.groupdict(), query, known)
        raise ProblemError(
            "not-found", f"there is nothing at {shown(request.path)!r}; /openapi.json tells what there is"
        )

    def _check_token(self, request: HttpRequest) -> None:
        if self._token is None:
            return
        scheme, _, sent = request.authorization.partition(" ")
        fits = hmac.compare_digest(sent.strip().encode("utf-8", "surrogateescape"), self._token)
        if scheme.lower() != "bearer" or not fits:
            raise ProblemError(
                "unauthorized",
                f"{shown(request.path)} needs the token of this application; send Authorization: Bearer TOKEN",
            )

    async def _live(self, given: Given) -> HttpAnswer:
        health = self._streams.health()
        body = {"alive": health.alive, "state": health.state.value, "stuck": health.stuck}
        return json_answer(body, 200 if health.alive else 503)

    async def _ready(self, given: Given) -> HttpAnswer:
        health = self._streams.health()
        tasks = {
            str(task): {"running": one.running, "remaining": one.remaining}
            for task, one in sorted(health.tasks.items())
        }
        body = {
            "ready": health.ready,
            "alive": health.alive,
            "state": health.state.value,
            "stuck": health.stuck,
            "paused": self._streams.is_paused,
            "running": sum(one.running for one in health.tasks.values()),
            "restoring": sum(not one.running for one in health.tasks.values()),
            "remaining": sum(one.remaining for one in health.tasks.values()),
            "tasks": tasks,
        }
        return json_answer(body, 200 if health.ready else 503)

    async def _described(self, given: Given) -> HttpAnswer:
        return json_answer(self.openapi())

    async def _told(self, given: Given) -> HttpAnswer:
        if self._metrics is None:
            raise ProblemError("not-found", "no metrics were given to this server")
        body, content_type = await self._routing.tellers.run(self._metrics)
        return HttpAnswer(200, {"content-type": content_type}, body)

    async def _instances(self, given: Given) -> HttpAnswer:
        found = await self._routing.tellers.run(self._streams.metadata_for_all_streams_clients)
        return json_answer({"instances": [_instance(one) for one in found]})

    async def _stores(self, given: Given) -> HttpAnswer:
        found = await self._routing.tellers.run(self._streams.local_queries.descriptions)
        return json_answer({"stores": [_told_of(one) for one in found.values()]})

    async def _store(self, given: Given) -> HttpAnswer:
        store = self._store_of(given)
        queries = self._streams.local_queries

        def look() -> dict[str, object]:
            owners = queries.owners(store.name)
            return _told_of(store) | {
                "here": [{"partition": one.partition, "role": one.role.value} for one in queries.held(store.name)],
                "partitions": [
                    {
                        "partition": number,
                        "active": f"{one.active_host.host}:{one.active_host.port}",
                        "standbys": sorted(f"{host.host}:{host.port}" for host in one.standby_hosts),
                    }
                    for number, one in owners.items()
                ],
            }

        return json_answer(await self._routing.tellers.run(look))

    def _store_of(self, given: Given) -> StoreDescription:
        name = given.need("store")
        queries = self._streams.local_queries
        queries.check_name(name)
        return queries.descriptions()[name]


class _Read:
    """A request that is a question for one row; see ``ShortRead``."""

    __slots__ = ("_given", "_reply", "question")

    def __init__(self, question: ShortQuestion, given: Given, reply: Reply) -> None:
        self.question = question
        self._given = given
        self._reply = reply

    def answered(self, row: ShownRow | None, source: Mapping[str, object]) -> None:
        if row is None:
            raise _no_such_key(self._given, [source])
        row["from"] = source
        self._reply(json_answer(body_of(self.question.store, row)))

    def failed(self, error: Exception) -> None:
        self._reply(problem_of(error, self._given.path).answer(self._given.path))

    def otherwise(self) -> None:
        self._reply.otherwise()


def _pairs(query: str) -> Sequence[tuple[str, str]]:
    """The names and texts of a query; a ``ProblemError`` for one that is no UTF-8."""
    if not query:
        return ()
    try:
        return parse_qsl(query, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise ProblemError("bad-request", f"the query of the request is no UTF-8 ({error}); {WRITE_UTF_8}") from error


def _of_query(parameters: Iterable[Parameter]) -> dict[str, Parameter]:
    return {one.name: one for one in parameters if one.place == "query"}


def _pattern(path: str) -> re.Pattern[str]:
    """Matches whole paths of a route: a key may have slashes and line ends in it."""
    return re.compile(compile_path(path.replace("{key}", "{key:path}"))[0].pattern, re.DOTALL)


def _one(answer: Answer, given: Given) -> HttpAnswer:
    rows = answer.rows
    if not rows:
        raise _no_such_key(given, [part.source.as_json() for part in answer.parts])
    source = next(part.source.as_json() for part in answer.parts if part.rows)
    return json_answer(rows[0].body[:-1] + b',"from":' + orjson.dumps(source) + b"}")


def _no_such_key(given: Given, sources: Sequence[Mapping[str, object]]) -> ProblemError:
    return ProblemError(
        "no-such-key",
        f"store {given.text('store')!r} has nothing for {shown(given.need('key'))!r}",
        **{"from": sources[0] if len(sources) == 1 else sources},
    )


def _rows(answer: Answer) -> HttpAnswer:
    return json_answer(
        {
            "rows": [fragment(row) for row in answer.rows],
            "next": None if answer.next is None else str(answer.next),
            "from": [part.source.as_json() for part in answer.parts],
        }
    )


def _told_of(store: StoreDescription) -> dict[str, object]:
    found: dict[str, object] = {"name": store.name, "kind": store.kind.value, "global": store.is_global}
    if store.key_serde is not None:
        found |= {"key_serde": repr(store.key_serde), "value_serde": repr(store.value_serde)}
    if store.window_size_ms is not None:
        found["window_size_ms"] = store.window_size_ms
    if store.retention_ms is not None:
        found["retention_ms"] = store.retention_ms
    return found


def _instance(one: StreamsMetadata) -> dict[str, object]:
    return {
        "host": f"{one.host}:{one.port}",
        "stores": sorted(one.state_store_names),
        "standby_stores": sorted(one.standby_state_store_names),
        "partitions": sorted([place.topic, place.partition] for place in one.topic_partitions),
        "standby_partitions": sorted([place.topic, place.partition] for place in one.standby_topic_partitions),
    }
