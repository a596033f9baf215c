"""What errors of the clients mean: passing, fencing, or final, and how they are put into words."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from pykstreams.core.errors import ClusterError

_FENCED = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)
PASSING = frozenset(
    {
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,  # the broker, or the client, has not heard of a topic that was made anew
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.NOT_CONTROLLER,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_COORD,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
    }
)


def kafka_error(exception: KafkaException) -> KafkaError:
    """The error inside an exception of the client."""
    error: KafkaError = exception.args[0]
    return error


def is_fencing(exception: KafkaException) -> bool:
    """Tells whether another worker has taken over from this one."""
    return kafka_error(exception).code() in _FENCED


def is_passing(exception: KafkaException) -> bool:
    """Tells whether the same request may well succeed a moment later."""
    error = kafka_error(exception)
    return error.code() in PASSING or error.retriable()


def cluster_error(doing: str, exception: KafkaException) -> ClusterError:
    """Puts a refusal of the cluster into words: what was tried, and what came back."""
    error = kafka_error(exception)
    return ClusterError(f"{doing} failed: {error.str()} ({error.name()})")
