"""Where clients come from: plain ones of ``confluent_kafka``, or those of the user."""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import ConfigError
from pykstreams.core.repeated_warnings import OncePerInterval
from pykstreams.runtime.clients.errors import kafka_error

T = TypeVar("T")

LIBRDKAFKA_LOG = logging.getLogger("pykstreams.librdkafka")
"""Where the client library writes what it notices by itself: during an outage, the same line many times a second."""

_TRIED_AGAIN = re.compile(r"Failed to acquire \w+ PID from broker .*retrying$")


class _TriedAgain(logging.Filter):
    """Lowers to INFO what the client says of each request for a producer id that it repeats by itself.

    Brokers that were started a moment ago refuse the first of them; a worker says itself what goes on failing.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if _TRIED_AGAIN.search(record.getMessage()):
            record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
        return True


for _filter in (_TriedAgain(), OncePerInterval(SystemClock())):
    LIBRDKAFKA_LOG.addFilter(_filter)


class KafkaClientSupplier(ABC):
    """Makes the clients, which are those of ``confluent_kafka`` or subclasses; hand in your own to change what they are
    made of.
    """

    @abstractmethod
    def get_admin(self, config: Mapping[str, object]) -> AdminClient:
        """Makes the administrative client."""

    @abstractmethod
    def get_producer(self, config: Mapping[str, object]) -> Producer:
        """Makes a producer."""

    @abstractmethod
    def get_consumer(self, config: Mapping[str, object]) -> Consumer:
        """Makes a consumer that reads input, or one that keeps the membership in the group."""

    @abstractmethod
    def get_restore_consumer(self, config: Mapping[str, object]) -> Consumer:
        """Makes a consumer that reads changelogs."""

    @abstractmethod
    def get_global_consumer(self, config: Mapping[str, object]) -> Consumer:
        """Makes a consumer that reads whole topics into global stores."""


class DefaultKafkaClientSupplier(KafkaClientSupplier):
    """Plain clients of confluent_kafka."""

    def get_admin(self, config: Mapping[str, object]) -> AdminClient:
        return _made("administrative client", lambda: AdminClient(cast("dict[str, Any]", dict(config))))

    def get_producer(self, config: Mapping[str, object]) -> Producer:
        return _made("producer", lambda: Producer(dict(config)))

    def get_consumer(self, config: Mapping[str, object]) -> Consumer:
        return _made("consumer", lambda: Consumer(dict(config)))

    def get_restore_consumer(self, config: Mapping[str, object]) -> Consumer:
        return _made("consumer", lambda: Consumer(dict(config)))

    def get_global_consumer(self, config: Mapping[str, object]) -> Consumer:
        return _made("consumer", lambda: Consumer(dict(config)))


def _made(kind: str, make: Callable[[], T]) -> T:
    """Makes a client; ``ConfigError`` where librdkafka cannot use its settings: a file is missing, a key is locked."""
    try:
        return make()
    except KafkaException as exception:
        raise ConfigError(
            f"librdkafka made no {kind} of the settings: {kafka_error(exception).str()}; correct the setting that is "
            "named there (a file must be there and readable, a locked key needs ssl.key.password)"
        ) from exception
