"""Orders that wait for what a service knows, and visits; httpx, which the library does not need, is stood in for."""

from dataclasses import dataclass
from types import ModuleType

from pykstreams import StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str


@dataclass(frozen=True)
class EnrichedOrder:
    order: Order
    name: str


@dataclass(frozen=True)
class Visit:
    country: str


@dataclass(frozen=True)
class NamedVisit:
    country: str
    name: str | None


async def name_of_country(code: str) -> str | None:
    return {"no": "Norway"}.get(code)


class AsyncClient:
    """Answers as the service of the page does."""

    async def get(self, url: str) -> "AsyncClient":
        self._name = url.rpartition("/")[2].title()
        return self

    def raise_for_status(self) -> None:
        pass

    def json(self) -> dict[str, str]:
        return {"name": self._name}


httpx = ModuleType("httpx")
httpx.AsyncClient = AsyncClient  # type: ignore[attr-defined]
STANDS_IN = {"httpx": httpx}

builder = StreamsBuilder()
orders = builder.stream("orders", str, Order)
visits = builder.stream("visits", str, Visit)
