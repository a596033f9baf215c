"""The answers of an application to requests: health, stores, metrics, and their description."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

import orjson
from starlette.routing import compile_path

from pykstreams.core.clock import Clock
from pykstreams.core.types import AnyPartitioner
from pykstreams.http import parameters as named
from pykstreams.http.access import Access
from pykstreams.http.asked_keys import AskedKey
from pykstreams.http.exchange import JSON, LIVE, READY, HttpAnswer, HttpRequest, json_answer
from pykstreams.http.key_lookups import KeyLookups, Replies
from pykstreams.http.live.page import LivePage
from pykstreams.http.openapi import described
from pykstreams.http.options import HttpOptions
from pykstreams.http.parameters import Given, Parameter
from pykstreams.http.problems import WRITE_UTF_8, ProblemError, no_such_key, problem_of, shown
from pykstreams.http.questions import fragment
from pykstreams.http.route import HttpRoute
from pykstreams.http.routing import Answer, Routing, parts_json
from pykstreams.http.served_application import ServedApplication
from pykstreams.http.staleness import Staleness
from pykstreams.http.store_routes import STORE_ROUTES, StoreRoute
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.queries.catalog import StoreDescription
from pykstreams.runtime.queries.metadata import StreamsMetadata

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
        self._lookups = KeyLookups(streams.local_queries, self._routing.me, partitioners)
        self._page = LivePage(streams, self._routing, staleness, clock)
        self._access = Access(options.token)
        self.routes = self._made()
        """All routes, in the order in which they are tried."""
        self._patterns = [
            (_pattern(one.path), one, _of_query(one.parameters), _of_query((*one.parameters, *one.among_instances)))
            for one in self.routes
        ]

    @property
    def between_batches(self) -> BetweenBatches:
        """Where workers are asked to look for questions."""
        return self._streams.local_queries.between

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        """Answers a request; every error becomes a JSON problem."""
        try:
            route, given = self._found(request)
            return await route.handler(given)
        except Exception as error:
            return problem_of(error, request.path).answer(request.path)

    def look_up(self, store: str, asked: Sequence[tuple[int, AskedKey]], replies: Replies) -> None:
        """Answers questions for keys of a store that tasks of this process have, and does not wait.

        Replies are given the answers, here, or later in the worker's thread; what is left to the other way, only
        ``answer`` answers.
        """
        self._lookups.begin(store, asked, replies)

    def close(self) -> None:
        """Ends its threads when they have done what they do; questions are refused from then on."""
        self._page.close()
        self._routing.close()

    def openapi(self) -> dict[str, object]:
        """The OpenAPI 3.1 description."""
        return described(self.routes, token=self._access.is_limited)

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
        if not self._access.allows(request.authorization):
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
        sources = [part.source.as_json() for part in answer.parts]
        raise no_such_key(given.need("store"), given.need("key"), sources)
    source = next(part.source.as_json() for part in answer.parts if part.rows)
    return json_answer(rows[0].body[:-1] + b',"from":' + orjson.dumps(source) + b"}")


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
