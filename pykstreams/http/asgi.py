"""The ASGI application over a ``KafkaStreams``: health, stores, metrics, and their description."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.types import AnyPartitioner
from pykstreams.http import parameters as named
from pykstreams.http.guard import Guard
from pykstreams.http.live.page import LivePage
from pykstreams.http.local_answers import Staleness
from pykstreams.http.openapi import described
from pykstreams.http.options import HttpOptions
from pykstreams.http.parameters import Given
from pykstreams.http.problems import ProblemError
from pykstreams.http.questions import fragment
from pykstreams.http.route import JSON, HttpRoute, json_response
from pykstreams.http.routing import Answer, Routing, parts_json
from pykstreams.http.served_application import ServedApplication
from pykstreams.http.store_routes import STORE_ROUTES, StoreRoute
from pykstreams.runtime.queries.catalog import StoreDescription
from pykstreams.runtime.queries.metadata import StreamsMetadata

MetricsText = Callable[[], tuple[bytes, str]]
"""Returns the metrics as a body and its content type."""


def app(
    streams: ServedApplication,
    *,
    options: HttpOptions | None = None,
    metrics: MetricsText | None = None,
    partitioners: Mapping[str, AnyPartitioner] | None = None,
    clock: Clock | None = None,
) -> HttpApp:
    """Makes the ASGI application of a ``KafkaStreams``, to be mounted in an application of your own.

    It may be made before the start. Instances ask each other under the path at which the question came, so mount it at
    the same path in all of them, and tell its address by ``application.server``.

    :param metrics: makes the answer of ``/metrics``; left out, there is no such route.
    :param partitioners: of stores whose records were not partitioned by the bytes of their keys, by store.
    """
    return HttpApp(streams, options or HttpOptions(), metrics, partitioners or {}, clock or SystemClock())


class HttpApp:
    """An ASGI application; made by ``app``."""

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
        self._routing = Routing(streams.local_queries, options, staleness, partitioners)
        self._page = LivePage(streams, self._routing, clock)
        self._token = None if options.token is None else options.token.encode()
        self.routes = self._made()
        """All routes, in the order in which they are tried."""
        inner = Router([Route(_pattern(one.path), self._endpoint(one)) for one in self.routes], redirect_slashes=False)
        inner.default = _nothing
        self._guarded: ASGIApp = Guard(inner, options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guarded(scope, receive, send)

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
                "/health/live", "live", "200 unless the application has failed: restart it.", self._live, open=True
            ),
            HttpRoute(
                "/health/ready", "ready", "200 when every task runs, with their progress.", self._ready, open=True
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
        async def handler(request: Request, given: Given) -> Response:
            store = self._store_of(given)
            asked = given.asked(self._options)
            question = route.asked_of(store, given)
            answer = await self._routing.answer(question, asked)
            if given.scope == "parts":
                return json_response(parts_json(answer))
            return _one(answer, store, given) if route.single else _rows(answer)

        schema = {"$ref": f"#/components/schemas/{'value' if route.single else 'rows'}"}
        parameters = (named.STORE, *route.parameters, *named.COMMON)
        if route.single:
            parameters = (*parameters, named.LIMIT)
        return HttpRoute(route.path, route.name, route.summary, handler, parameters, False, {JSON: {"schema": schema}})

    def _endpoint(self, route: HttpRoute) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if not route.open:
                self._check_token(request)
            given = Given(
                request.scope["path"], request.path_params, request.query_params.multi_items(), route.parameters
            )
            return await route.handler(request, given)

        return endpoint

    def _check_token(self, request: Request) -> None:
        if self._token is None:
            return
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        fits = hmac.compare_digest(sent.strip().encode("utf-8", "surrogateescape"), self._token)
        if scheme.lower() != "bearer" or not fits:
            raise ProblemError(
                "unauthorized",
                f"{request.scope['path']} needs the token of this application; send Authorization: Bearer TOKEN",
            )

    async def _live(self, request: Request, given: Given) -> Response:
        health = self._streams.health()
        return json_response({"alive": health.alive, "state": health.state.value}, 200 if health.alive else 503)

    async def _ready(self, request: Request, given: Given) -> Response:
        health = self._streams.health()
        tasks = {
            str(task): {"running": one.running, "remaining": one.remaining}
            for task, one in sorted(health.tasks.items())
        }
        body = {
            "ready": health.ready,
            "alive": health.alive,
            "state": health.state.value,
            "paused": self._streams.is_paused,
            "running": sum(one.running for one in health.tasks.values()),
            "restoring": sum(not one.running for one in health.tasks.values()),
            "remaining": sum(one.remaining for one in health.tasks.values()),
            "tasks": tasks,
        }
        return json_response(body, 200 if health.ready else 503)

    async def _described(self, request: Request, given: Given) -> Response:
        return json_response(self.openapi())

    async def _told(self, request: Request, given: Given) -> Response:
        if self._metrics is None:
            raise ProblemError("not-found", "no metrics were given to this server")
        body, content_type = await self._routing.readers.run(self._metrics)
        return Response(body, headers={"content-type": content_type})

    async def _instances(self, request: Request, given: Given) -> Response:
        found = await self._routing.readers.run(self._streams.metadata_for_all_streams_clients)
        return json_response({"instances": [_instance(one) for one in found]})

    async def _stores(self, request: Request, given: Given) -> Response:
        found = await self._routing.readers.run(self._streams.local_queries.descriptions)
        return json_response({"stores": [_told_of(one) for one in found.values()]})

    async def _store(self, request: Request, given: Given) -> Response:
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

        return json_response(await self._routing.readers.run(look))

    def _store_of(self, given: Given) -> StoreDescription:
        name = given.need("store")
        queries = self._streams.local_queries
        queries.check_name(name)
        return queries.descriptions()[name]


def _pattern(path: str) -> str:
    """The path for the router: a key may have slashes in it."""
    return path.replace("{key}", "{key:path}")


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise ProblemError("not-found", f"there is nothing at {scope['path']!r}; /openapi.json tells what there is")


def _one(answer: Answer, store: StoreDescription, given: Given) -> Response:
    rows = answer.rows
    sources = [part.source.as_json() for part in answer.parts]
    if not rows:
        told: object = sources[0] if len(sources) == 1 else sources
        raise ProblemError(
            "no-such-key", f"store {store.name!r} has nothing for {given.text('key')!r}", **{"from": told}
        )
    source = next(part.source.as_json() for part in answer.parts if part.rows)
    return json_response(rows[0].body[:-1] + b',"from":' + orjson.dumps(source) + b"}")


def _rows(answer: Answer) -> Response:
    return json_response(
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
