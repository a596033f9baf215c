"""The routes of the live page: the page itself, the drawing of the topology, and the facts of all instances."""

from __future__ import annotations

import asyncio
from importlib import resources
from typing import Final
from urllib.parse import quote

from pykstreams.core.clock import Clock
from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.http.exchange import HttpAnswer, json_answer
from pykstreams.http.live.facts import Facts, LiveFacts
from pykstreams.http.live.log_lines import LogLines
from pykstreams.http.parameters import Given, Parameter
from pykstreams.http.problems import ProblemError
from pykstreams.http.route import HttpRoute
from pykstreams.http.routing import Routing
from pykstreams.http.served_application import ServedApplication
from pykstreams.http.staleness import Staleness
from pykstreams.runtime.membership.host_info import HostInfo

INSTANCES: Final = Parameter("instances", "all asks the other instances of the group, too.", choices=("own", "all"))

_POLICY: Final = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"
_HEADERS: Final = {
    "content-security-policy": f"{_POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_ASSETS: Final = {
    "": ("page.html", "text/html; charset=utf-8"),
    "live/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "live/page.css": ("page.css", "text/css; charset=utf-8"),
}


class LivePage:
    """The page and what it asks for; the page holds no data, so that it needs no token, and asks for one."""

    def __init__(self, streams: ServedApplication, routing: Routing, staleness: Staleness, clock: Clock) -> None:
        self._streams = streams
        self._routing = routing
        self._log = LogLines()
        self._facts = LiveFacts(streams, self._log, staleness, clock)
        self._drawing: bytes | None = None
        self._log.attach()

    def close(self) -> None:
        """Keeps no more lines of the log."""
        self._log.detach()

    def routes(self) -> list[HttpRoute]:
        """The routes of the page."""
        content = {"image/svg+xml": {"schema": {"type": "string"}}}
        return [
            *(_asset(path, name, media) for path, (name, media) in _ASSETS.items()),
            HttpRoute("/live/topology.svg", "drawing", "The topology, drawn.", self._drawn, content=content),
            HttpRoute("/live.json", "facts", "The facts that the live page shows.", self._live, (INSTANCES,)),
        ]

    async def _drawn(self, given: Given) -> HttpAnswer:
        if self._drawing is None:
            self._drawing = (await self._routing.tellers.run(self._draw)).encode()
        return HttpAnswer(200, _HEADERS | {"content-type": "image/svg+xml"}, self._drawing)

    def _draw(self) -> str:
        return self._streams.describe().to_svg()

    async def _live(self, given: Given) -> HttpAnswer:
        own = await self._routing.tellers.run(self._facts.gather)
        if given.text("instances") != "all":
            return json_answer(own)
        others = await self._routing.tellers.run(self._others)
        told = await asyncio.gather(*(self._ask(host, given.path) for host in others))
        return json_answer({"asked": own["instance"], "instances": [own, *told]})

    def _others(self) -> list[HostInfo]:
        """The addresses of the other instances; none before the first assignment."""
        me = self._streams.local_queries.host
        try:
            found = self._streams.metadata_for_all_streams_clients()
        except InvalidStateStoreError:
            return []
        hosts = {HostInfo(one.host, one.port) for one in found} - {me, HostInfo.UNAVAILABLE}
        return sorted(hosts, key=lambda host: (host.host, host.port))

    async def _ask(self, host: HostInfo, path: str) -> Facts:
        try:
            found = await self._routing.ask(host, quote(path, safe="/"))
        except ProblemError as problem:
            return {"instance": f"{host.host}:{host.port}", "error": problem.detail}
        if not isinstance(found, dict) or "nodes" not in found:
            return {
                "instance": f"{host.host}:{host.port}",
                "error": "it answered no facts; run the same release on all",
            }
        return found


def _asset(path: str, name: str, media: str) -> HttpRoute:
    body = resources.files("pykstreams.http.live").joinpath(name).read_bytes()

    async def answer(given: Given) -> HttpAnswer:
        return HttpAnswer(200, _HEADERS | {"content-type": media}, body)

    content = {media.partition(";")[0]: {"schema": {"type": "string"}}}
    return HttpRoute(f"/{path}", f"page_{name.replace('.', '_')}", f"The live page: {name}.", answer, (), True, content)
