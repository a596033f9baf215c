"""The settings of the Kafka clients of a worker, under librdkafka's names.

Four layers, each over the one before: what Kafka Streams starts from, the settings that streams and clients
share, the user's keys without and with a prefix (``consumer.`` under ``main.consumer.``), and what an
application must own.

Invariant: no user's setting is dropped without a word; one that contradicts an owned setting is an error when
the configuration is made (``ownership_problems``).

Where librdkafka's defaults differ from those of the Java clients, Kafka Streams' behaviour decides
(``isolation.level``, ``linger.ms``, ``batch.size``, ``delivery.timeout.ms``, ``acks``), or a measurement does
(``fetch.queue.backoff.ms``, ``fetch.wait.max.ms``, ``queued.min.messages``, ``max.partition.fetch.bytes``), or how soon
a worker goes on after an outage (``socket.timeout.ms`` of consumers).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from pykstreams.core.references import load_reference
from pykstreams.core.settings.keys import (
    ADMIN_PREFIX,
    CLIENT_PREFIXES,
    CONSUMER_PREFIX,
    GLOBAL_CONSUMER_PREFIX,
    KEYS,
    MAIN_CONSUMER_PREFIX,
    PRODUCER_PREFIX,
    RESTORE_CONSUMER_PREFIX,
    TOPIC_PREFIX,
)
from pykstreams.core.settings.librdkafka_keys import LIBRDKAFKA_KEYS, ClientKey, Kind, Scope, canonical_name
from pykstreams.core.settings.names import ConfigNames
from pykstreams.core.settings.parsing import shown

TRANSACTION_TIMEOUT_MS = 10_000
"""Default under exactly-once: short, so that readers do not wait long for a worker that died."""


_SETUP_MS = 10_000
"""How long a connection may take to be set up, as in Java. Packets that are lost are sent again ever later: in 30 s,
librdkafka's default, the last time after 15 s, so that a network may be back for as long before that is noticed."""

_CONSUMER_ANSWER_MS = 10_000
"""How long consumers wait for an answer, where ``request.timeout.ms`` is not set. They wait for fetches all the time,
and one that was on its way when a network was cut comes long after the network is back, or never."""


class ClientKind(Enum):
    """The clients of a worker; the value holds the prefixes of their settings, the weaker one first."""

    MAIN_CONSUMER = (CONSUMER_PREFIX, MAIN_CONSUMER_PREFIX)
    RESTORE_CONSUMER = (CONSUMER_PREFIX, RESTORE_CONSUMER_PREFIX)
    GLOBAL_CONSUMER = (CONSUMER_PREFIX, GLOBAL_CONSUMER_PREFIX)
    PRODUCER = (PRODUCER_PREFIX,)
    ADMIN = (ADMIN_PREFIX,)

    @property
    def scope(self) -> Scope:
        if self is ClientKind.PRODUCER:
            return Scope.PRODUCER
        return Scope.ALL if self is ClientKind.ADMIN else Scope.CONSUMER


_CONSUMER_OWNED: Mapping[str, object] = {
    "allow.auto.create.topics": False,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "group.protocol": "classic",
    "partition.assignment.strategy": "cooperative-sticky",
}
_CONSUMER_OWNED_EOS: Mapping[str, object] = {"isolation.level": "read_committed"}
_PRODUCER_OWNED: Mapping[str, object] = {"delivery.report.only.error": True}
_PRODUCER_OWNED_EOS: Mapping[str, object] = {"enable.idempotence": True}
_FOREIGN: Mapping[str, str] = {
    "bootstrap.servers": "there is one cluster for all clients; set 'bootstrap.servers' without a prefix",
    "client.id": "client ids are made from 'client.id' without a prefix",
    "group.id": "the group is named by 'application.id'",
    "group.remote.assignor": "tasks are shared by the application; remove the setting",
    "transactional.id": "transactional ids are made by the worker; remove the setting",
}
_OF_MEMBERS = ("group.instance.id", "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms")
"""Of members of a group: librdkafka compares them with each other also where a consumer is none."""
_MAX_IN_FLIGHT = "max.in.flight.requests.per.connection"
_MAX_IN_FLIGHT_EOS = 5


def client_settings(
    kind: ClientKind,
    settings: Mapping[str, object],
    explicit: Mapping[str, object],
    *,
    client_id: str,
    group_id: str = "",
) -> dict[str, object]:
    """Returns the settings that a client is made with.

    :param settings: every setting of Kafka Streams with its value.
    :param explicit: the settings that the user gave.
    :param group_id: for consumers; restore and global consumers need one too, and never join its group.
    """
    eos = is_exactly_once(settings)
    client = _defaults(kind, eos)
    client.update(_shared(kind, settings, explicit))
    client.update(_users(kind, explicit))
    client.update(_owned(kind, eos))
    client["client.id"] = client_id
    if kind.scope is Scope.CONSUMER:
        client["group.id"] = group_id
        if kind is not ClientKind.MAIN_CONSUMER:
            for name in _OF_MEMBERS:
                client.pop(name, None)
            client["auto.offset.reset"] = "error"
        elif client["auto.offset.reset"] == "none":  # Java's word for it
            client["auto.offset.reset"] = "error"
    if kind is ClientKind.PRODUCER and eos:
        # librdkafka refuses a request that may outlive its transaction
        client["socket.timeout.ms"] = min(_int(client["socket.timeout.ms"]), _int(client["transaction.timeout.ms"]))
    return {name: _loaded(name, value) for name, value in client.items()}


def is_exactly_once(settings: Mapping[str, object]) -> bool:
    """Whether results, state and offsets are to be committed in one transaction, by all settings with their values."""
    return settings["processing.guarantee"] == ConfigNames.EXACTLY_ONCE_V2


def ownership_problems(settings: Mapping[str, object], explicit: Mapping[str, object]) -> Iterator[str]:
    """Yields what a user may not set, or not together; each as one sentence."""
    eos = is_exactly_once(settings)
    for name, value in explicit.items():
        prefix, client_name = _split(name)
        if client_name not in LIBRDKAFKA_KEYS or (not prefix and name in KEYS):
            continue
        canonical = canonical_name(client_name)
        if canonical in _FOREIGN:
            yield f"setting {name!r} is {shown(name, value)}, but {_FOREIGN[canonical]}"
            continue
        owned = {**_CONSUMER_OWNED, **_PRODUCER_OWNED}
        if eos:
            owned.update({**_CONSUMER_OWNED_EOS, **_PRODUCER_OWNED_EOS})
        if canonical in owned and str(value).lower() != str(owned[canonical]).lower():
            because = " under exactly_once_v2" if canonical in {**_CONSUMER_OWNED_EOS, **_PRODUCER_OWNED_EOS} else ""
            yield (
                f"setting {name!r} is {shown(name, value)}, but a Streams application needs "
                f"{owned[canonical]!r}{because}; remove the setting"
            )
        of_producer = canonical == _MAX_IN_FLIGHT and prefix in ("", PRODUCER_PREFIX)
        if eos and of_producer and _int(value) > _MAX_IN_FLIGHT_EOS:
            yield (
                f"setting {name!r} is {value!r}, but exactly_once_v2 allows at most {_MAX_IN_FLIGHT_EOS} "
                "requests in flight; lower it"
            )
    yield from _conflicts(settings, explicit, eos)


def _conflicts(settings: Mapping[str, object], explicit: Mapping[str, object], eos: bool) -> Iterator[str]:
    producer = _users(ClientKind.PRODUCER, explicit)
    timeout = _int(producer.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))
    commit_interval = _int(settings["commit.interval.ms"])
    if eos and timeout < commit_interval:
        yield (
            f"the transaction timeout of {timeout} ms is shorter than commit.interval.ms={commit_interval}, "
            "so every transaction would time out; lower 'commit.interval.ms' or raise "
            "'producer.transaction.timeout.ms'"
        )
    segment = explicit.get(TOPIC_PREFIX + "segment.bytes")
    batch = producer.get("batch.size")
    if segment is not None and batch is not None and str(segment).isdigit() and int(str(segment)) < _int(batch):
        yield (
            f"topic.segment.bytes={segment} is smaller than the producer's batch.size={batch}, so a full "
            "batch could not be appended; raise the one or lower the other"
        )


def _defaults(kind: ClientKind, eos: bool) -> dict[str, object]:
    """Yields the defaults of Kafka Streams' clients, and what fetching needs."""
    client: dict[str, object] = {"socket.connection.setup.timeout.ms": _SETUP_MS}
    if kind is ClientKind.ADMIN:
        return client
    if kind is ClientKind.PRODUCER:
        client |= {
            # Java's partitions for the same keys; librdkafka's own default differs
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "linger.ms": 100,
            # Java's; a send costs about 10 % more than with 64 KB and more
            "batch.size": 16_384,
        }
        if eos:
            # the delivery timeout is left to librdkafka, which fits it into the transaction
            client["transaction.timeout.ms"] = TRANSACTION_TIMEOUT_MS
        else:
            client["delivery.timeout.ms"] = 120_000
        return client
    consumer = client | {
        "auto.offset.reset": "earliest",
        "isolation.level": "read_uncommitted",
        # the next fetch leaves 1 ms after the queue has room: several times the rate of the default of 1000
        "fetch.queue.backoff.ms": 1,
    }
    if kind is ClientKind.RESTORE_CONSUMER:
        # a broker serves one fetch at a time: one that waits at the end of a changelog holds up the changelogs
        # that come next, and only an empty fetch shows that transaction markers are all that is left
        consumer["fetch.wait.max.ms"] = 10
    if kind is ClientKind.MAIN_CONSUMER:
        # pausing a partition throws away what was fetched ahead: fetch little ahead
        consumer["queued.min.messages"] = 2000
        consumer["max.partition.fetch.bytes"] = 262_144
        # the shortest that brokers allow: a dead worker's tasks move after 6 s
        consumer["session.timeout.ms"] = 6000
        consumer["heartbeat.interval.ms"] = 2000
    return consumer


def _shared(
    kind: ClientKind, settings: Mapping[str, object], explicit: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    """The settings of Kafka Streams that its clients have, too."""
    brokers = settings.get("bootstrap.servers", ())
    if isinstance(brokers, tuple):
        yield "bootstrap.servers", ",".join(map(str, brokers))
    for name in (
        "enable.metrics.push",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "reconnect.backoff.ms",
        "retry.backoff.ms",
        "security.protocol",
    ):
        yield name, settings[name]
    longest = "reconnect.backoff.max.ms"
    alone = "reconnect.backoff.ms" in explicit and longest not in explicit
    yield longest, settings["reconnect.backoff.ms" if alone else longest]
    # librdkafka keeps its cached entries three times as long as it takes to renew them
    yield (
        "topic.metadata.refresh.interval.ms",
        min(max(_int(settings["metadata.max.age.ms"]) // 3, 1), 3_600_000),
    )
    yield "connections.max.idle.ms", max(_int(settings["connections.max.idle.ms"]), 0)  # 0: never
    answer_ms = _int(settings["request.timeout.ms"])
    soon = kind.scope is Scope.CONSUMER and "request.timeout.ms" not in explicit
    yield "socket.timeout.ms", min(answer_ms, _CONSUMER_ANSWER_MS) if soon else answer_ms
    if kind is ClientKind.PRODUCER:
        yield "request.timeout.ms", settings["request.timeout.ms"]
    for name in ("send.buffer.bytes", "receive.buffer.bytes"):
        if name in explicit:
            yield f"socket.{name}", max(_int(settings[name]), 0)  # 0: as the operating system likes


def _users(kind: ClientKind, explicit: Mapping[str, object]) -> dict[str, object]:
    """The user's keys for a client: those without a prefix first, then the nearer prefix over the farther."""
    found: dict[str, object] = {}
    for prefix in ("", *kind.value):
        for name, value in explicit.items():
            found_prefix, client_name = _split(name)
            if found_prefix != prefix or client_name not in LIBRDKAFKA_KEYS or (not prefix and name in KEYS):
                continue
            if LIBRDKAFKA_KEYS[client_name].scope in (Scope.ALL, kind.scope):
                found[canonical_name(client_name)] = value
    return found


def _owned(kind: ClientKind, eos: bool) -> dict[str, object]:
    if kind is ClientKind.PRODUCER:
        return {**_PRODUCER_OWNED, **(_PRODUCER_OWNED_EOS if eos else {})}
    if kind is ClientKind.ADMIN:
        return {}
    owned = {**_CONSUMER_OWNED, **(_CONSUMER_OWNED_EOS if eos else {})}
    if kind is not ClientKind.MAIN_CONSUMER:
        # they are assigned by hand and belong to no group
        del owned["partition.assignment.strategy"]
    return owned


def _split(name: str) -> tuple[str, str]:
    if name not in LIBRDKAFKA_KEYS and name not in KEYS:
        for prefix in CLIENT_PREFIXES:
            if name.startswith(prefix):
                return prefix, name.removeprefix(prefix)
    return "", name


def client_key(name: str) -> ClientKey | None:
    """The entry of the client's setting that a name, with or without the prefix of a client, stands for."""
    return LIBRDKAFKA_KEYS.get(_split(name)[1])


def _int(value: object) -> int:
    return value if isinstance(value, int) else int(str(value))


def _loaded(name: str, value: object) -> object:
    key = LIBRDKAFKA_KEYS.get(name)
    if key is not None and key.kind is Kind.CALLABLE and isinstance(value, str):
        return load_reference(value)
    return value
