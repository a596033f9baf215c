"""The example ``price_server.py``: its answers from the state of a task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import pytest

from examples.more.price_server import answer, build
from pykstreams import KafkaStreams, QueryableStoreType, Serdes
from pykstreams.core.errors import StreamsRebalancingError
from tests.unit.runtime.queries.queried import Application

DAY = 86_400_000
T = TypeVar("T")


class Prices(Application):
    """The task of the example, read as ``KafkaStreams`` would be."""

    def price(self, product: str, cents: int | None, time: int) -> None:
        value = None if cents is None else Serdes.long().serializer.serialize("prices", cents)
        self.feed_raw((product.encode(), value, time))


class HasStores(Protocol):
    """The part of ``KafkaStreams`` that the example asks."""

    def store(self, store_name: str, store_type: QueryableStoreType[T], /) -> T: ...


_real: type[HasStores] = KafkaStreams
_task_of_the_example: type[HasStores] = Prices


def answered(prices: Prices, url: str) -> tuple[int, dict[str, Any]]:
    return answer(cast("KafkaStreams", prices), url)


@pytest.fixture
def prices(tmp_path: Path) -> Iterator[Prices]:
    app = Prices(build(), tmp_path, topic="prices")
    app.start()
    yield app
    app.close()


def test_price_of_now_and_of_a_time_is_answered(prices: Prices) -> None:
    prices.price("tea", 300, 1 * DAY)
    prices.price("tea", 350, 3 * DAY)

    assert answered(prices, "/prices/tea") == (200, {"product": "tea", "cents": 350, "since_ms": 3 * DAY})
    then = "/prices/tea?as_of=1970-01-03T00:00Z"
    assert answered(prices, then) == (200, {"product": "tea", "cents": 300, "since_ms": 1 * DAY})
    assert answered(prices, "/prices/tea?as_of=1970-01-01T00:00Z")[0] == 404
    assert answered(prices, "/prices/coffee") == (404, {"error": "no price of 'coffee'"})


def test_wrong_requests_are_refused(prices: Prices) -> None:
    assert answered(prices, "/")[0] == 404
    assert answered(prices, "/prices/tea?as_of=soon")[0] == 400
    assert answered(prices, "/prices/tea?as_of=1970-01-01T00:00")[0] == 400


def test_request_during_a_rebalance_is_to_be_repeated(prices: Prices) -> None:
    prices.checks.append(StreamsRebalancingError("a rebalance"))

    assert answered(prices, "/prices/tea") == (503, {"error": "a rebalance"})
