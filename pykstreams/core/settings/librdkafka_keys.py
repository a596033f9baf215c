"""The property names of librdkafka 2.x: for which clients each one is, and what kind of value it takes.

Plain data, read from librdkafka 2.16 itself. Ranges and choices are left to librdkafka: they widen with its
releases, and a copy of them here would refuse what works.

Invariant: every alias of a property has one canonical name, the one that Kafka's manual uses, so that a
default and a user's setting never meet under two names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Scope(Enum):
    """Which clients read a property."""

    ALL = "all clients"
    CONSUMER = "consumers"
    PRODUCER = "producers"


class Kind(Enum):
    """The values that a property takes; the text completes the sentence "expected ..."."""

    FLAG = "true or false"
    INT = "a whole number"
    NUMBER = "a number"
    TEXT = "text"
    CALLABLE = "a callable"
    NATIVE = "nothing: it can be set through librdkafka's C interface only"


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One property of librdkafka."""

    name: str
    scope: Scope
    kind: Kind


def _rows(scope: Scope, kind: Kind, names: str) -> Iterator[tuple[str, ClientKey]]:
    for name in names.split():
        yield name, ClientKey(name, scope, kind)


LIBRDKAFKA_KEYS: Mapping[str, ClientKey] = MappingProxyType(
    dict(
        (
            *_rows(
                Scope.ALL,
                Kind.CALLABLE,
                # logger and oauth_cb are additions of confluent-kafka
                "error_cb logger oauth_cb stats_cb throttle_cb",
            ),
            *_rows(
                Scope.ALL,
                Kind.FLAG,
                """
                api.version.request enable.metrics.push enable.random.seed
                enable.sasl.oauthbearer.unsecure.jwt enable.ssl.certificate.verification
                log.connection.close log.queue log.thread.name
                sasl.oauthbearer.assertion.claim.jti.include socket.keepalive.enable
                socket.nagle.disable topic.metadata.refresh.sparse
                """,
            ),
            *_rows(
                Scope.ALL,
                Kind.INT,
                """
                api.version.fallback.ms api.version.request.timeout.ms broker.address.ttl
                connections.max.idle.ms enabled_events internal.termination.signal log_level
                max.in.flight max.in.flight.requests.per.connection message.copy.max.bytes
                message.max.bytes metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
                receive.message.max.bytes reconnect.backoff.jitter.ms reconnect.backoff.max.ms
                reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms
                sasl.kerberos.min.time.before.relogin sasl.oauthbearer.assertion.claim.exp.seconds
                sasl.oauthbearer.assertion.claim.nbf.seconds socket.blocking.max.ms
                socket.connection.setup.timeout.ms socket.max.fails socket.receive.buffer.bytes
                socket.send.buffer.bytes socket.timeout.ms statistics.interval.ms
                topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
                topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
                """,
            ),
            *_rows(
                Scope.ALL,
                Kind.NATIVE,
                """
                background_event_cb closesocket_cb connect_cb default_topic_conf interceptors log_cb
                oauthbearer_token_refresh_cb opaque open_cb resolve_cb socket_cb
                ssl.certificate.verify_cb ssl_ca ssl_certificate ssl_engine_callback_data ssl_key
                """,
            ),
            *_rows(
                Scope.ALL,
                Kind.TEXT,
                """
                bootstrap.servers broker.address.family broker.version.fallback builtin.features
                client.dns.lookup client.id client.rack debug https.ca.location https.ca.pem
                metadata.broker.list metadata.recovery.strategy plugin.library.paths
                sasl.kerberos.keytab sasl.kerberos.kinit.cmd sasl.kerberos.principal
                sasl.kerberos.service.name sasl.mechanism sasl.mechanisms
                sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
                sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.sub
                sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.jwt.template.file
                sasl.oauthbearer.assertion.private.key.file
                sasl.oauthbearer.assertion.private.key.passphrase
                sasl.oauthbearer.assertion.private.key.pem
                sasl.oauthbearer.client.credentials.client.id
                sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.client.id
                sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions
                sasl.oauthbearer.grant.type sasl.oauthbearer.metadata.authentication.type
                sasl.oauthbearer.method sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name
                sasl.oauthbearer.token.endpoint.url sasl.password sasl.username security.protocol
                ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem ssl.certificate.location
                ssl.certificate.pem ssl.cipher.suites ssl.crl.location ssl.curves.list
                ssl.endpoint.identification.algorithm ssl.engine.id ssl.engine.location
                ssl.key.location ssl.key.password ssl.key.pem ssl.keystore.location
                ssl.keystore.password ssl.providers ssl.sigalgs.list topic.blacklist
                """,
            ),
            *_rows(
                Scope.CONSUMER,
                Kind.FLAG,
                """
                allow.auto.create.topics auto.commit.enable check.crcs enable.auto.commit
                enable.auto.offset.store enable.partition.eof
                """,
            ),
            *_rows(
                Scope.CONSUMER,
                Kind.INT,
                """
                auto.commit.interval.ms consume.callback.max.messages coordinator.query.interval.ms
                fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes
                fetch.queue.backoff.ms fetch.wait.max.ms heartbeat.interval.ms
                max.partition.fetch.bytes max.poll.interval.ms max.poll.records
                offset.store.sync.interval.ms queued.max.messages.kbytes queued.min.messages
                session.timeout.ms
                """,
            ),
            *_rows(Scope.CONSUMER, Kind.NATIVE, "consume_cb offset_commit_cb rebalance_cb"),
            *_rows(
                Scope.CONSUMER,
                Kind.TEXT,
                """
                auto.offset.reset group.id group.instance.id group.protocol group.protocol.type
                group.remote.assignor isolation.level offset.store.method offset.store.path
                partition.assignment.strategy share.acknowledgement.mode
                """,
            ),
            *_rows(
                Scope.PRODUCER,
                Kind.FLAG,
                """
                delivery.report.only.error enable.gapless.guarantee enable.idempotence
                produce.offset.report
                """,
            ),
            *_rows(
                Scope.PRODUCER,
                Kind.INT,
                """
                batch.num.messages batch.size compression.level delivery.timeout.ms
                message.send.max.retries message.timeout.ms queue.buffering.backpressure.threshold
                queue.buffering.max.kbytes queue.buffering.max.messages request.timeout.ms retries
                sticky.partitioning.linger.ms transaction.timeout.ms
                """,
            ),
            *_rows(Scope.PRODUCER, Kind.NATIVE, "dr_cb dr_msg_cb msg_order_cmp partitioner_cb"),
            *_rows(Scope.PRODUCER, Kind.NUMBER, "linger.ms queue.buffering.max.ms"),
            *_rows(
                Scope.PRODUCER,
                Kind.TEXT,
                # acks are numbers, or "all"
                """
                acks compression.codec compression.type partitioner queuing.strategy
                request.required.acks transactional.id
                """,
            ),
        )
    )
)

_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "auto.commit.enable": "enable.auto.commit",
        "compression.codec": "compression.type",
        "fetch.message.max.bytes": "max.partition.fetch.bytes",
        "max.in.flight": "max.in.flight.requests.per.connection",
        "message.send.max.retries": "retries",
        "message.timeout.ms": "delivery.timeout.ms",
        "metadata.broker.list": "bootstrap.servers",
        "queue.buffering.max.ms": "linger.ms",
        "request.required.acks": "acks",
        "sasl.mechanisms": "sasl.mechanism",
        "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    }
)

JAVA_CLIENT_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "buffer.memory": "use 'queue.buffering.max.kbytes' (in kilobytes)",
        "default.api.timeout.ms": "it has no counterpart in librdkafka",
        "fetch.max.wait.ms": "use 'fetch.wait.max.ms'",
        "interceptor.classes": "it has no counterpart in librdkafka",
        "key.deserializer": "give serdes in Consumed or in 'default.key.serde'",
        "key.serializer": "give serdes in Produced or in 'default.key.serde'",
        "max.block.ms": "the worker waits for a full producer queue by itself",
        "max.request.size": "use 'message.max.bytes'",
        "partitioner.class": "use 'partitioner', or a partitioner in Produced",
        "sasl.client.callback.handler.class": "it has no counterpart in librdkafka",
        "sasl.jaas.config": "use 'sasl.username' and 'sasl.password', or the 'sasl.kerberos.*' settings",
        "sasl.login.callback.handler.class": "use 'sasl.oauthbearer.method' or 'oauth_cb'",
        "socket.connection.setup.timeout.max.ms": "use 'socket.connection.setup.timeout.ms'",
        "ssl.enabled.protocols": "it has no counterpart in librdkafka",
        "ssl.keystore.type": "PKCS#12 is read from 'ssl.keystore.location', PEM from 'ssl.key.location'",
        "ssl.protocol": "it has no counterpart in librdkafka",
        "ssl.truststore.location": "use 'ssl.ca.location' (PEM)",
        "ssl.truststore.password": "use 'ssl.ca.location' (PEM), which needs no password",
        "ssl.truststore.type": "use 'ssl.ca.location' (PEM)",
        "test.mock.num.brokers": "it makes each client a cluster of its own; run with --embedded instead",
        "value.deserializer": "give serdes in Consumed or in 'default.value.serde'",
        "value.serializer": "give serdes in Produced or in 'default.value.serde'",
    }
)
"""Names that users of the Java clients try, and what to do instead; they are unknown keys here."""


def canonical_name(name: str) -> str:
    """The name Kafka's manual uses for a property that librdkafka knows under several.

    >>> canonical_name("queue.buffering.max.ms")
    'linger.ms'
    """
    return _ALIASES.get(name, name)
