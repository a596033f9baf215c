"""The settings of a consumer of librdkafka, as the wire layer of ``kafka-python`` takes them.

All of librdkafka's security settings are taken over, or refused by name: a member must not speak to the brokers in
another way than the clients that fetch and produce.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kafka.errors import KafkaConnectionError
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
_AS_FILES: Final = "give the certificate and its key as PEM files: ssl.certificate.location, ssl.key.location"
_BY_FUNCTION: Final = "fetch tokens in a function of your own: 'oauth_cb'"
_BY_OPENSSL: Final = "set it in the configuration of OpenSSL, which both use"
_REFUSED: Final = {
    "ssl.certificate.pem": _AS_FILES,
    "ssl.key.pem": _AS_FILES,
    "ssl.keystore.location": _AS_FILES,
    "ssl.keystore.password": _AS_FILES,
    "ssl.engine.id": _AS_FILES,
    "ssl.engine.location": _AS_FILES,
    "ssl.ca.certificate.stores": "give the certificates of the authorities as PEM: ssl.ca.location",
    "ssl.curves.list": _BY_OPENSSL,
    "ssl.sigalgs.list": _BY_OPENSSL,
    "ssl.providers": "take an image whose OpenSSL has the provider configured",
    "enable.sasl.oauthbearer.unsecure.jwt": _BY_FUNCTION,
}
_REFUSED_FAMILIES: Final = ("sasl.oauthbearer.", "https.")
"""librdkafka's own ways to tokens."""
_CALLBACK_CONFIG: Final = "sasl.oauthbearer.config"
_HARMLESS: Final = {"sasl.oauthbearer.method": "default"}


def wire_settings(settings: Mapping[str, object], *, embedded: bool) -> dict[str, Any]:
    """Returns the settings for connections; ``ConfigError`` names a setting that cannot be taken over.

    :param settings: those of a consumer, under librdkafka's names.
    :param embedded: whether the cluster is librdkafka's own, whose list of versions ``kafka-python`` cannot read.
    """
    for key, value in settings.items():
        if value and (cure := _cure(key)) and _HARMLESS.get(key) != value:
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


def _cure(key: str) -> str | None:
    if key.startswith(_REFUSED_FAMILIES) and key != _CALLBACK_CONFIG:
        return _BY_FUNCTION
    return _REFUSED.get(key)


def _ssl_context(settings: Mapping[str, object]) -> ssl.SSLContext:
    """The context for connections; the authorities of the machine are trusted only where no others are named."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    location, text = settings.get("ssl.ca.location"), settings.get("ssl.ca.pem")
    try:
        if text:
            context.load_verify_locations(cadata=str(text))
        elif location and str(location) != "probe":
            path = Path(str(location))
            context.load_verify_locations(**({"capath": str(path)} if path.is_dir() else {"cafile": str(path)}))
        else:
            context.load_default_certs()
        if revoked := settings.get("ssl.crl.location"):
            context.load_verify_locations(str(revoked))
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        if certificate := settings.get("ssl.certificate.location"):
            context.load_cert_chain(
                str(certificate),
                str(settings.get("ssl.key.location") or certificate),
                # without one, OpenSSL would ask for it on the terminal, and the worker would stand still
                str(settings.get("ssl.key.password") or ""),
            )
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(
            "the certificates of the settings ssl.ca.location, ssl.ca.pem, ssl.crl.location, ssl.certificate.location "
            f"and ssl.key.location could not be read (a locked key needs ssl.key.password): {error}"
        ) from error
    if str(settings.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    if str(settings.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if ciphers := settings.get("ssl.cipher.suites"):
        try:
            context.set_ciphers(str(ciphers))
        except ssl.SSLError as error:
            raise ConfigError(f"setting 'ssl.cipher.suites' names no cipher that OpenSSL has: {ciphers!r}") from error
    return context


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
        found["sasl_oauth_token_provider"] = _Tokens(callback, str(settings.get(_CALLBACK_CONFIG, "")))
    return found


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # of a library without types
    """Tokens of the user's ``oauth_cb``."""

    def __init__(self, callback: Any, config: str) -> None:
        self._callback = callback
        self._config = config

    def token(self) -> str:
        """Returns a token; ``KafkaConnectionError`` when there is none, as for any connection that was not made."""
        return str(self._asked()[0])

    def extensions(self) -> dict[str, str]:
        """Returns the SASL extensions, which ``oauth_cb`` gives as its fourth value."""
        found = self._asked()
        return dict(found[3]) if len(found) > 3 else {}

    def _asked(self) -> Sequence[Any]:
        try:
            return tuple(self._callback(self._config))
        except Exception as error:  # of the user, or of what hands out tokens
            raise KafkaConnectionError(f"'oauth_cb' gave no token: {error!r}") from error
