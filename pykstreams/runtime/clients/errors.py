"""The meaning of client errors, in one place: which may pass, which fence, which break a client, which are final.

An error is known by its name (``KafkaError.name()``), so that nobody needs the client library to ask.

=============  ==================================================================  ===============================
meaning        what it says                                                        what becomes of it
=============  ==================================================================  ===============================
``PASSING``    the cluster is busy, is moving, or does not answer                  try again, up to a time
``FENCED``     somebody else has taken over, or the group has gone on without us   abort, give up tasks, join again
``BROKEN``     this client, or its transaction, cannot go on                       abort, make the client anew
``REFUSED``    the cluster will not have it, however often it is asked             the application ends
``RECORD``     anything else: about a record, it is the record's own fault         its handler decides
=============  ==================================================================  ===============================
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Protocol, TypeAlias

from confluent_kafka import KafkaError, KafkaException

from pykstreams.core.errors import ClusterError, ClusterUnavailableError, DeliveryError, StreamsError, TaskMigratedError


class Meaning(Enum):
    """The meaning of a client's error for the caller."""

    PASSING = "passing"
    FENCED = "fenced"
    BROKEN = "broken"
    REFUSED = "refused"
    RECORD = "record"


_Text: TypeAlias = str


class ClientError(Protocol):
    """The used methods of ``confluent_kafka.KafkaError``."""

    def name(self) -> _Text: ...

    def str(self) -> _Text: ...

    def fatal(self) -> bool: ...

    def retriable(self) -> bool: ...


_PASSING = frozenset(
    {
        "REBALANCE_IN_PROGRESS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "NOT_LEADER_FOR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "BROKER_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "UNKNOWN_LEADER_EPOCH",  # the broker, or the client, does not know yet of a topic that was made anew
        "FENCED_LEADER_EPOCH",  # the client has an old leader in mind; it asks again for its metadata
        "OFFSET_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "INVALID_MSG",  # what came to the broker is not what was sent: its checksum is another one
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
        "LISTENER_NOT_FOUND",
        "NETWORK_EXCEPTION",
        "KAFKA_STORAGE_ERROR",
        "UNSTABLE_OFFSET_COMMIT",
        "NOT_CONTROLLER",
        "CONCURRENT_TRANSACTIONS",
        "THROTTLING_QUOTA_EXCEEDED",
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "_TRANSPORT",
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_MSG_TIMED_OUT",
        "_WAIT_COORD",
        "_WAIT_CACHE",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_NOENT",  # "no leaders found": the answer of list_offsets while a partition has none
        "_NODE_UPDATE",
        "_RETRY",
        "_IN_PROGRESS",
        "_OUTDATED",
    }
)
GROUP_IS_GONE: Final = "GROUP_ID_NOT_FOUND"
"""The coordinator has no such group: the answer to a commit where it has lost it, with its members."""
OUT_OF_CLASSIC_GROUP: Final = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", GROUP_IS_GONE})
"""A classic group has put its member out, or has gone on without it; it may join again."""
OUT_OF_STREAMS_GROUP: Final = frozenset({"UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"})
"""The same of a streams group, which tells of an older epoch otherwise: the member may only be slow to hear of it."""
INSTANCE_ID_TAKEN: Final = "FENCED_INSTANCE_ID"
"""Another member has joined a classic group with the ``group.instance.id`` of this one."""
_FENCED = frozenset(
    {
        *OUT_OF_CLASSIC_GROUP,
        *OUT_OF_STREAMS_GROUP,
        INSTANCE_ID_TAKEN,
        "STALE_MEMBER_EPOCH",
        "UNRELEASED_INSTANCE_ID",
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_PRODUCER_ID_MAPPING",
        "TRANSACTION_COORDINATOR_FENCED",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "_FENCED",
        "_ASSIGNMENT_LOST",
    }
)
_BROKEN = frozenset(
    {
        "_FATAL",
        "_STATE",  # there is no transaction (any more), or it must be aborted first
        "_CONFLICT",  # another call of the same producer has not ended
        "_PREV_IN_PROGRESS",
        "_INCONSISTENT",
        "_DESTROY",
        "_CRIT_SYS_RESOURCE",
        "INVALID_TXN_STATE",
        "TRANSACTION_ABORTABLE",
        "UNKNOWN_PRODUCER_ID",
    }
)
_REFUSED = frozenset(
    {
        "_AUTHENTICATION",
        "_SSL",
        "_UNSUPPORTED_FEATURE",
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_TRANSACTION_TIMEOUT",
        "SASL_AUTHENTICATION_FAILED",
        "SECURITY_DISABLED",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNSUPPORTED_VERSION",
        "UNKNOWN",
    }
)
"""Errors about which no handler is asked, among others (``RecordCollectorImpl.isFatalException``, 4.3.1)."""

_UNKNOWN_TOPIC = frozenset({"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"})

TOO_LARGE: Final = frozenset({"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"})
"""The client, or a broker, does not take a record for its size."""
LARGER_RECORDS: Final = "raise max.message.bytes of the topic and producer.message.max.bytes"
"""The cure for that."""

_CURES: Final = {
    "INVALID_REPLICATION_FACTOR": "fewer brokers are up than replication.factor wants copies: start the others, or set "
    "it to their number, or to -1 for the brokers' default",
    "INVALID_TRANSACTION_TIMEOUT": "set producer.transaction.timeout.ms to the brokers' transaction.max.timeout.ms or "
    "less",
}
"""Cures for errors that name none."""

_MEANINGS = {
    **dict.fromkeys(_PASSING, Meaning.PASSING),
    **dict.fromkeys(_FENCED, Meaning.FENCED),
    **dict.fromkeys(_BROKEN, Meaning.BROKEN),
    **dict.fromkeys(_REFUSED, Meaning.REFUSED),
}


def meaning_of(error: ClientError) -> Meaning:
    """Returns what an error means; one that is fatal to its client, and says nothing more, has broken it."""
    found = _MEANINGS.get(error.name())
    if found in (Meaning.FENCED, Meaning.REFUSED):
        return found
    if error.fatal():
        return Meaning.BROKEN
    if found is not None:
        return found
    return Meaning.PASSING if error.retriable() else Meaning.RECORD


class GroupError(Exception):
    """A request to the coordinator of a group failed.

    :param name: the error's name, as ``KafkaError.name()`` gives it.
    """

    def __init__(self, error: KafkaError) -> None:
        super().__init__(f"{error.str()} ({error.name()})")
        self.name = error.name()
        self.meaning = meaning_of(error)

    @property
    def may_pass(self) -> bool:
        """Whether the same request, over a new connection, may succeed."""
        return self.meaning in (Meaning.PASSING, Meaning.BROKEN)

    def as_cluster_error(self, doing: str) -> ClusterError:
        """The error for those who asked; ``ClusterUnavailableError`` where the same may succeed later."""
        kind = ClusterUnavailableError if self.may_pass else ClusterError
        return kind(f"{doing} failed: {self}")


def kafka_error(exception: KafkaException) -> KafkaError:
    """The error inside an exception of the client."""
    error: KafkaError = exception.args[0]
    return error


def client_error(exception: Exception) -> ClientError | None:
    """The error inside an exception of the client, by its having a name; ``None`` for any other exception."""
    inner: Any = exception.args[0] if exception.args else None
    return inner if hasattr(inner, "name") else None


def is_fencing(exception: KafkaException) -> bool:
    """Whether another worker has taken over from this one."""
    return meaning_of(kafka_error(exception)) is Meaning.FENCED


def is_passing(exception: KafkaException) -> bool:
    """Whether the same request may well succeed a moment later."""
    return meaning_of(kafka_error(exception)) is Meaning.PASSING


def cluster_error(doing: str, exception: KafkaException) -> ClusterError:
    """The error for a request that failed: what was tried, and what came back.

    ``ClusterUnavailableError`` where the same request may succeed later.
    """
    error = kafka_error(exception)
    kind = ClusterUnavailableError if is_passing(exception) else ClusterError
    cure = _CURES.get(error.name())
    return kind(f"{doing} failed: {error.str()} ({error.name()}){f'; {cure}' if cure else ''}")


def is_of_unknown_topic(error: BaseException) -> bool:
    """Whether an error of ours came from brokers, or a client, that know nothing of a topic or partition."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, DeliveryError) and cause.name in _UNKNOWN_TOPIC:
            return True
        if isinstance(cause, KafkaException) and kafka_error(cause).name() in _UNKNOWN_TOPIC:
            return True
        cause = cause.__cause__
    return False


def transaction_error(doing: str, exception: KafkaException) -> StreamsError:
    """The error for a step of a transaction that failed: it is aborted, unless the cluster refuses it for good."""
    error = kafka_error(exception)
    if meaning_of(error) is Meaning.REFUSED and not error.txn_requires_abort():
        return cluster_error(doing, exception)
    return TaskMigratedError(f"{doing} failed: {error.str()} ({error.name()})")
