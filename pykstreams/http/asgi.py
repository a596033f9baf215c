"""The ASGI application over a ``KafkaStreams``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.types import Receive, Scope, Send

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.shown_values import with_noun
from pykstreams.core.types import AnyPartitioner
from pykstreams.http.answers import Answers, MetricsText
from pykstreams.http.guard import Guard
from pykstreams.http.options import HttpOptions
from pykstreams.http.route import HttpRoute
from pykstreams.http.served_application import ServedApplication


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
    chosen = options or HttpOptions()
    return HttpApp(Answers(streams, chosen, metrics, partitioners or {}, clock or SystemClock()), chosen)


class HttpApp:
    """An ASGI application; made by ``app``."""

    def __init__(self, answers: Answers, options: HttpOptions) -> None:
        self.answers = answers
        self._guarded = Guard(answers.answer, options)

    def __repr__(self) -> str:
        return f"<HttpApp with {with_noun(len(self.routes), 'route')}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guarded(scope, receive, send)

    @property
    def routes(self) -> Sequence[HttpRoute]:
        """All routes, in the order in which they are tried."""
        return self.answers.routes

    def openapi(self) -> dict[str, object]:
        """The OpenAPI 3.1 description."""
        return self.answers.openapi()

    def close(self) -> None:
        """Ends its threads when they have done what they do; questions are refused from then on."""
        self.answers.close()
