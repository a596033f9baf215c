"""Errors of a coordinator, as fakes raise them."""

from __future__ import annotations

from confluent_kafka import KafkaError

from pykstreams.runtime.clients.errors import GroupError

NO_ANSWER = KafkaError._TIMED_OUT


def group_error(code: int) -> GroupError:
    """The error of a request that was answered with that code, or not at all."""
    return GroupError(KafkaError(code))
