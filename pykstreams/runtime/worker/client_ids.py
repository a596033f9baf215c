"""The client ids of a worker, under which brokers know its clients (``ClientUtils``, 4.3.1)."""

from __future__ import annotations


def consumer_id(worker: str) -> str:
    """The id of the consumer that reads the inputs of a worker's tasks."""
    return f"{worker}-consumer"


def restore_consumer_id(worker: str) -> str:
    """The id of the consumer that reads changelogs."""
    return f"{worker}-restore-consumer"


def producer_id(worker: str) -> str:
    """The id of the producer."""
    return f"{worker}-producer"
