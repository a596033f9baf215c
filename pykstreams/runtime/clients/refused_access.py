"""Brokers that answer and do not let a client in: how that is told from brokers that do not answer, and what to do.

What a client says goes on in words of librdkafka, OpenSSL or the broker, none of which know the secrets of settings.
"""

from __future__ import annotations

import re
from typing import Final

from confluent_kafka import KafkaError

_USER: Final = "check sasl.mechanism, sasl.username and sasl.password, and that the brokers know this user"
_AUTHORITY: Final = (
    "check that ssl.ca.location (or ssl.ca.pem) names the authority of the brokers' certificates, and that these are "
    "made out to the host names in bootstrap.servers"
)
_CERTIFICATE: Final = (
    "check that ssl.certificate.location and ssl.key.location name a certificate of an authority that the brokers "
    "trust, and that it has not expired"
)
_PROTOCOL: Final = "check that security.protocol is that of the listener whose port bootstrap.servers names"

_BROKERS_ARE_DOWN: Final = KafkaError._ALL_BROKERS_DOWN
_CURES: Final = (
    (re.compile("certificate.verify.failed|certificate could not be verified|hostname mismatch", re.I), _AUTHORITY),
    (re.compile(r"alert \w*[ _]?(bad certificate|certificate|unknown ca|access denied)|_ALERT_", re.I), _CERTIFICATE),
    (re.compile("PLAINTEXT broker listener|wrong.version.number|record layer failure", re.I), _PROTOCOL),
    (re.compile("SASL|authentication failed", re.I), _USER),
)


class Complaints:
    """The last complaint of a client since it was asked for one (its ``error_cb``)."""

    def __init__(self) -> None:
        self._last: str | None = None

    def __call__(self, error: KafkaError) -> None:
        """Notes it; that all brokers are down follows from what was said before, and tells no reason."""
        if error.code() != _BROKERS_ARE_DOWN:
            self._last = error.str()

    def take(self) -> str | None:
        """Returns the complaint, and forgets it."""
        last, self._last = self._last, None
        return last


def cure_of(complaint: str) -> str | None:
    """Returns what to do about a client that was not let in; ``None`` where a complaint is about something else."""
    return next((cure for pattern, cure in _CURES if pattern.search(complaint)), None)
