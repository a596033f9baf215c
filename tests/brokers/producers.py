"""Producers for the input of tests, whose results depend on the order of records."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Producer


def producer_in_order(bootstrap_servers: str, settings: Mapping[str, object] | None = None) -> Producer:
    """Makes a producer that keeps the order of records also where it has to send again.

    A plain one does not: on a busy machine the first batch into a new topic may be refused, and come after the second.
    """
    return Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, **(settings or {})})
