"""What the errors of the client library mean, whoever makes the call."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from pykstreams.core.errors import ClusterError, ClusterUnavailableError, DeliveryError, TaskMigratedError
from pykstreams.runtime.clients import errors
from pykstreams.runtime.clients.errors import (
    Meaning,
    cluster_error,
    is_of_unknown_topic,
    meaning_of,
    transaction_error,
)


@pytest.mark.parametrize("name", sorted(errors._MEANINGS))
def test_every_name_is_one_of_the_library(name: str) -> None:
    assert name == KafkaError(getattr(KafkaError, name)).name()


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("FENCED_LEADER_EPOCH", Meaning.PASSING),
        ("_NOENT", Meaning.PASSING),
        ("_TRANSPORT", Meaning.PASSING),
        ("UNKNOWN_MEMBER_ID", Meaning.FENCED),
        ("PRODUCER_FENCED", Meaning.FENCED),
        ("_STATE", Meaning.BROKEN),
        ("_CONFLICT", Meaning.BROKEN),
        ("TOPIC_AUTHORIZATION_FAILED", Meaning.REFUSED),
        ("MSG_SIZE_TOO_LARGE", Meaning.RECORD),
    ],
)
def test_meaning_of_an_error_is_known_by_its_name(name: str, meaning: Meaning) -> None:
    assert meaning is meaning_of(KafkaError(getattr(KafkaError, name)))


def test_what_to_do_is_said_of_an_error_that_does_not_say_it() -> None:
    error = cluster_error("creating topic 'log'", KafkaException(KafkaError(KafkaError.INVALID_REPLICATION_FACTOR)))

    assert str(error).endswith(
        "(INVALID_REPLICATION_FACTOR); fewer brokers are up than replication.factor wants copies: start the others, or "
        "set it to their number, or to -1 for the brokers' default"
    )


@pytest.mark.parametrize("name", sorted(errors._UNKNOWN_TOPIC))
def test_unknown_topics_are_known_by_the_error_of_the_client_or_of_a_delivery(name: str) -> None:
    said = ClusterError("asking for the end failed")
    said.__cause__ = KafkaException(KafkaError(getattr(KafkaError, name)))

    assert is_of_unknown_topic(said)
    assert is_of_unknown_topic(DeliveryError("not delivered", name=name))
    assert not is_of_unknown_topic(DeliveryError("not delivered", name="MSG_SIZE_TOO_LARGE"))


def test_error_that_is_fatal_to_its_client_has_broken_it() -> None:
    assert Meaning.BROKEN is meaning_of(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large", True))


def test_fatal_error_of_a_fenced_client_is_fencing() -> None:
    assert Meaning.FENCED is meaning_of(KafkaError(KafkaError.FENCED_INSTANCE_ID, "fenced", True))


def test_unknown_error_that_the_library_calls_retriable_passes() -> None:
    assert Meaning.PASSING is meaning_of(KafkaError(KafkaError.TOPIC_DELETION_DISABLED, "?", False, True))


def test_request_that_may_succeed_later_is_told_from_one_that_is_refused() -> None:
    passing = cluster_error("asking", KafkaException(KafkaError(KafkaError._TRANSPORT)))
    refused = cluster_error("asking", KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)))

    assert (type(passing), type(refused)) == (ClusterUnavailableError, ClusterError)
    assert "asking failed" in str(refused)
    assert "CLUSTER_AUTHORIZATION_FAILED" in str(refused)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._STATE, TaskMigratedError),
        (KafkaError._TIMED_OUT, TaskMigratedError),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ClusterError),
    ],
)
def test_transaction_that_failed_is_given_up_unless_it_is_refused_for_good(code: int, kind: type[Exception]) -> None:
    assert kind is type(transaction_error("committing", KafkaException(KafkaError(code))))
