"""Coroutine functions of users: what they give is the type of the stream's values; checked, never run."""

from datetime import timedelta
from typing import assert_type

from pykstreams import KStream


class Client:
    async def name_of(self, customer: int) -> str:
        return str(customer)


async def with_key(key: str, customer: int) -> tuple[str, int]:
    return key, customer


def blocking(customer: int) -> str:
    return str(customer)


def enrichment(customers: KStream[str, int], client: Client) -> None:
    assert_type(customers.map_values_async(client.name_of), KStream[str, str])
    assert_type(
        customers.map_values_async(with_key, with_key=True, timeout=timedelta(seconds=2), retries=3),
        KStream[str, tuple[str, int]],
    )
    customers.map_values_async(blocking)  # type: ignore[arg-type]
    customers.map_values_async(with_key)  # type: ignore[arg-type]
