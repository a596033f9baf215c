"""Clients that brokers do not let in: said at once, in the words of the brokers, with what to do."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from pykstreams.core.errors import ClusterError, ConfigError
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.refused_access import Complaints, cure_of
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from tests.unit.runtime.cluster_fakes import FakeClock

WRONG_PASSWORD = (
    "sasl_ssl://one:1/bootstrap: SASL authentication error: Authentication failed during authentication due to invalid "
    "credentials with SASL mechanism SCRAM-SHA-512 (after 321ms in state AUTH_REQ)"
)
NO_ANSWER = "one:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)"


@pytest.mark.parametrize(
    ("complaint", "setting"),
    [
        (WRONG_PASSWORD, "sasl.password"),
        ("SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism", "sasl.mechanism"),
        ("[Error 58] SaslAuthenticationFailedError: Authentication failed", "sasl.password"),
        ("SSL handshake failed: error:0A000086:SSL routines::certificate verify failed", "ssl.ca.location"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: Hostname mismatch", "ssl.ca.location"),
        (
            "Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate: SSL alert number 42",
            "ssl.certificate.location",
        ),
        ("[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca (_ssl.c:2580)", "ssl.certificate.location"),
        ("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required", "ssl.certificate.location"),
        ("SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?", "security.protocol"),
    ],
)
def test_each_refusal_names_the_settings_to_look_at(complaint: str, setting: str) -> None:
    cure = cure_of(complaint)
    assert cure is not None
    assert setting in cure


@pytest.mark.parametrize("complaint", [NO_ANSWER, "1/1 brokers are down", "Local: Broker transport failure"])
def test_brokers_that_do_not_answer_have_refused_nothing(complaint: str) -> None:
    assert cure_of(complaint) is None


def test_that_all_brokers_are_down_does_not_hide_why() -> None:
    complaints = Complaints()
    complaints(KafkaError(KafkaError._AUTHENTICATION, WRONG_PASSWORD))
    complaints(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert complaints.take() == WRONG_PASSWORD
    assert complaints.take() is None


class ComplainingAdmin(AdminClient):
    """It is an ``AdminClient`` for the types only: nothing of it is made. Each question takes a second."""

    def __init__(self, clock: FakeClock, complaints: Complaints, *, texts: list[str | None]) -> None:
        self.clock, self.complaints, self.texts = clock, complaints, texts

    def list_topics(self, *_: Any, **__: Any) -> Any:
        self.clock.advance(1)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        if text is not None:
            self.complaints(KafkaError(KafkaError._AUTHENTICATION, text))
        self.complaints(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def poll(self, *_: Any, **__: Any) -> int:
        return 0


def refused_after(*texts: str | None, at_most_s: float = float("inf")) -> tuple[str, float]:
    """What is said last, and after how many seconds, where each text is a complaint and ``None`` is silence."""
    clock, complaints = FakeClock(), Complaints()
    begun = clock.monotonic()
    admin = ClusterAdmin(ComplainingAdmin(clock, complaints, texts=list(texts)), "one:1", clock, 30, complaints, 300)
    with pytest.raises(ClusterError) as raised:
        admin.wait_until_reachable(at_most_s=at_most_s)
    return str(raised.value), clock.monotonic() - begun


def test_a_start_that_is_refused_gives_up_within_seconds(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        text, seconds = refused_after(WRONG_PASSWORD)
    assert text == (
        f"the brokers at one:1 do not let this application in: {WRONG_PASSWORD}; check sasl.mechanism, sasl.username "
        "and sasl.password, and that the brokers know this user"
    )
    assert seconds == 4
    assert WRONG_PASSWORD in caplog.text


def test_brokers_that_are_starting_may_refuse_at_first() -> None:
    text, seconds = refused_after(*[WRONG_PASSWORD] * 3, NO_ANSWER)
    assert text.startswith("no broker answered at one:1 within 300 s")
    assert seconds == 300


def test_reason_that_was_given_once_is_said_in_the_end() -> None:
    """librdkafka tells why it cannot connect only when that changes."""
    text, _ = refused_after(None, NO_ANSWER, None)
    assert text == (
        f"no broker answered at one:1 within 300 s: {NO_ANSWER}; check bootstrap.servers and that the broker runs, or "
        "raise task.timeout.ms"
    )


def test_silence_after_a_refusal_is_no_refusal() -> None:
    text, seconds = refused_after(WRONG_PASSWORD, None)
    assert text.startswith(f"no broker answered at one:1 within 300 s: {WRONG_PASSWORD}; check sasl.mechanism")
    assert seconds == 300


def test_tool_does_not_advise_a_setting_that_it_does_not_heed() -> None:
    text, seconds = refused_after(NO_ANSWER, at_most_s=15)
    assert (
        text
        == f"no broker answered at one:1 within 15 s: {NO_ANSWER}; check bootstrap.servers and that the broker runs"
    )
    assert seconds == 15


def test_settings_that_librdkafka_cannot_use_are_an_error_without_secrets() -> None:
    settings = {"bootstrap.servers": "one:1", "security.protocol": "ssl", "ssl.key.password": "opensesame"}
    for make in (DefaultKafkaClientSupplier().get_admin, DefaultKafkaClientSupplier().get_producer):
        with pytest.raises(ConfigError, match=r"librdkafka made no .*ssl\.ca\.location") as raised:
            make({**settings, "ssl.ca.location": "nowhere.pem", "log_level": 0})
        assert "opensesame" not in str(raised.value)
