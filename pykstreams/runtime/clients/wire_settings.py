"""The settings of a consumer of librdkafka, as the wire layer of ``kafka-python`` takes them.

All of librdkafka's security settings are taken over, or refused by name: a member must not speak to the brokers in
another way than the clients that fetch and produce.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kafka.net.sasl.oauth import AbstractTokenProvider

from pykstreams.core.errors import ConfigError

_LARGEST_ANSWER: Final = 100 * 1024 * 1024
"""A leader gets the subscriptions of all members in one answer."""
_RECONNECT_MAX_MS: Final = 1_000
_EMBEDDED_VERSION: Final = (1, 1)
"""The brokers that an embedded cluster is spoken to as: it takes all that they take."""

_SASL: Final = {
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
}
_REFUSED: Final = {
    "ssl.keystore.location": "give the certificate and its key as PEM: ssl.certificate.location, ssl.key.location",
    "ssl.engine.location": "give the certificate and its key as PEM: ssl.certificate.location, ssl.key.location",
    "ssl.providers": "take an image whose OpenSSL has the provider configured",
    "ssl.curves.list": "set the curves in OpenSSL's configuration (openssl.cnf)",
    "ssl.sigalgs.list": "set the algorithms in OpenSSL's configuration (openssl.cnf)",
}


def wire_settings(settings: Mapping[str, object], *, embedded: bool) -> dict[str, Any]:
    """Returns the settings for connections; ``ConfigError`` names a setting that cannot be taken over.

    :param settings: those of a consumer, under librdkafka's names.
    :param embedded: whether the cluster is librdkafka's own, whose list of versions ``kafka-python`` cannot read.
    """
    for key, cure in _REFUSED.items():
        if settings.get(key):
            raise ConfigError(f"setting {key!r} cannot be used by the member of the group; {cure}")
    protocol = str(settings.get("security.protocol", "plaintext")).upper()
    found: dict[str, Any] = {
        "bootstrap_servers": [one.strip() for one in str(settings["bootstrap.servers"]).split(",")],
        "client_id": str(settings.get("client.id", "")),
        "receive_message_max_bytes": _LARGEST_ANSWER,
        "reconnect_backoff_max_ms": _RECONNECT_MAX_MS,
        "security_protocol": protocol,
    }
    if embedded:
        found["api_version"] = _EMBEDDED_VERSION
    if "SSL" in protocol:
        found["ssl_context"] = _ssl_context(settings)
    if protocol.startswith("SASL"):
        found.update(_sasl(settings))
    return found


def _ssl_context(settings: Mapping[str, object]) -> ssl.SSLContext:
    try:
        # those of the system are trusted only where no others are named
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, **_authorities(settings))
        if revoked := settings.get("ssl.crl.location"):
            context.load_verify_locations(str(revoked))
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        if certificate := settings.get("ssl.certificate.location"):
            password = settings.get("ssl.key.password")
            context.load_cert_chain(
                str(certificate),
                str(settings.get("ssl.key.location") or certificate),
                None if password is None else str(password),
            )
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            "the certificates of the settings ssl.ca.location, ssl.ca.pem, ssl.crl.location, ssl.certificate.location "
            f"and ssl.key.location could not be read: {error}"
        ) from error
    for key in ("ssl.certificate.pem", "ssl.key.pem"):
        if settings.get(key):
            raise ConfigError(f"setting {key!r} cannot be used by the member of the group; put the PEM into a file")
    if str(settings.get("ssl.endpoint.identification.algorithm", "https")) == "none":
        context.check_hostname = False
    if str(settings.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if ciphers := settings.get("ssl.cipher.suites"):
        try:
            context.set_ciphers(str(ciphers))
        except ssl.SSLError as error:
            raise ConfigError(f"setting 'ssl.cipher.suites' is {ciphers!r}, of which OpenSSL knows none") from error
    return context


def _authorities(settings: Mapping[str, object]) -> dict[str, Any]:
    location, text = settings.get("ssl.ca.location"), settings.get("ssl.ca.pem")
    if text:
        return {"cadata": str(text)}
    if location and str(location) != "probe":
        path = Path(str(location))
        return {"capath": str(path)} if path.is_dir() else {"cafile": str(path)}
    return {}


def _sasl(settings: Mapping[str, object]) -> dict[str, Any]:
    mechanism = str(settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI").upper()
    found: dict[str, Any] = {"sasl_mechanism": mechanism}
    found.update({ours: str(settings[key]) for key, ours in _SASL.items() if key in settings})
    if mechanism == "OAUTHBEARER":
        callback = settings.get("oauth_cb")
        if not callable(callback):
            raise ConfigError(
                "sasl.mechanism OAUTHBEARER needs the setting 'oauth_cb', a function that returns (token, expiry): "
                "the member of the group fetches tokens by it, and cannot use librdkafka's own way to them"
            )
        found["sasl_oauth_token_provider"] = _Tokens(callback, str(settings.get("sasl.oauthbearer.config", "")))
    return found


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # of a library without types
    """Tokens of the user's ``oauth_cb``."""

    def __init__(self, callback: Any, config: str) -> None:
        self._callback = callback
        self._config = config

    def token(self) -> str:
        """Returns a token."""
        return str(self._callback(self._config)[0])

    def extensions(self) -> dict[str, str]:
        """Returns the SASL extensions, which ``oauth_cb`` gives as its fourth value."""
        found = self._callback(self._config)
        return dict(found[3]) if len(found) > 3 else {}
