"""Settings of librdkafka, taken over for connections of our own or refused by name."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kafka.errors import KafkaConnectionError

from pykstreams.core.errors import ConfigError
from pykstreams.core.settings.librdkafka_keys import LIBRDKAFKA_KEYS, Kind
from pykstreams.runtime.clients.coordinators.wire_settings import wire_settings

SSL = {"bootstrap.servers": "one:1, two:2", "security.protocol": "ssl"}
SASL = {"bootstrap.servers": "one:1", "security.protocol": "sasl_plaintext"}
PASSWORD = "opensesame"


@dataclass(frozen=True)
class Pem:
    """A certificate that signs itself, and its key, as files."""

    certificate: Path
    key: Path
    locked_key: Path
    name: str


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Pem:
    folder = tmp_path_factory.mktemp("pem")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "own-authority")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    found = Pem(folder / "cert.pem", folder / "key.pem", folder / "locked.pem", "own-authority")
    found.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    layout = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    found.key.write_bytes(key.private_bytes(*layout, serialization.NoEncryption()))
    locked = serialization.BestAvailableEncryption(PASSWORD.encode())
    found.locked_key.write_bytes(key.private_bytes(*layout, locked))
    return found


def wired(base: dict[str, str], settings: dict[str, object] | None = None) -> dict[str, Any]:
    return wire_settings({**base, **(settings or {})}, embedded=False)


def context_of(settings: Mapping[str, object]) -> ssl.SSLContext:
    context = wired(SSL, dict(settings))["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    return context


def authorities(context: ssl.SSLContext) -> list[str]:
    return [dict(part[0] for part in one["subject"])["commonName"] for one in context.get_ca_certs()]  # type: ignore[misc]


def test_connections_without_security_need_nothing() -> None:
    found = wire_settings({"bootstrap.servers": "one:1, two:2", "client.id": "me"}, embedded=False)
    assert found["bootstrap_servers"] == ["one:1", "two:2"]
    assert (found["client_id"], found["security_protocol"]) == ("me", "PLAINTEXT")
    assert not found.keys() & {"ssl_context", "sasl_mechanism", "api_version"}


def test_brokers_are_checked_by_default() -> None:
    context = context_of({})
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_only_the_given_authority_is_trusted(pem: Pem) -> None:
    for settings in (
        {"ssl.ca.location": str(pem.certificate)},
        {"ssl.ca.pem": pem.certificate.read_text()},
    ):
        assert authorities(context_of(dict(settings))) == [pem.name]


def test_the_checks_of_brokers_can_be_left_out() -> None:
    context = context_of({"ssl.endpoint.identification.algorithm": "none"})
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)
    for off in (False, "false", "False"):
        context = context_of({"enable.ssl.certificate.verification": off})
        assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)


def test_a_certificate_is_read_with_its_key(pem: Pem) -> None:
    context_of({"ssl.certificate.location": str(pem.certificate), "ssl.key.location": str(pem.key)})
    locked = {"ssl.certificate.location": str(pem.certificate), "ssl.key.location": str(pem.locked_key)}
    context_of({**locked, "ssl.key.password": PASSWORD})
    with pytest.raises(ConfigError, match=r"ssl\.key\.location"):
        context_of({**locked, "ssl.key.password": "wrong"})


def test_nobody_is_asked_for_the_password_of_a_key(pem: Pem) -> None:
    locked = {"ssl.certificate.location": str(pem.certificate), "ssl.key.location": str(pem.locked_key)}
    with pytest.raises(ConfigError, match=r"ssl\.key\.password"):
        context_of(locked)


def test_ciphers_are_taken_over_and_wrong_ones_are_refused() -> None:
    names = [one["name"] for one in context_of({"ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"}).get_ciphers()]
    assert "ECDHE-RSA-AES256-GCM-SHA384" in names
    assert "ECDHE-RSA-AES128-GCM-SHA256" not in names
    with pytest.raises(ConfigError, match=r"ssl\.cipher\.suites"):
        context_of({"ssl.cipher.suites": "ROT13"})


@pytest.mark.parametrize("key", ["ssl.ca.location", "ssl.ca.pem", "ssl.crl.location", "ssl.certificate.location"])
def test_files_that_cannot_be_read_are_named(key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        context_of({key: "nowhere/größe.pem"})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("key", ["sasl.mechanism", "sasl.mechanisms"])
def test_users_and_passwords_are_taken_over(mechanism: str, key: str) -> None:
    found = wired(SASL, {key: mechanism, "sasl.username": "u", "sasl.password": "p"})
    assert found["security_protocol"] == "SASL_PLAINTEXT"
    assert (found["sasl_mechanism"], found["sasl_plain_username"], found["sasl_plain_password"]) == (
        mechanism,
        "u",
        "p",
    )


def test_tokens_come_from_the_function_of_the_user() -> None:
    found = wired(
        SASL,
        {
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda config: (f"token for {config}", 1.0, "me", {"zone": "a"}),
            "sasl.oauthbearer.config": "x=1",
        },
    )
    tokens = found["sasl_oauth_token_provider"]
    assert tokens.token() == "token for x=1"
    assert tokens.extensions() == {"zone": "a"}
    with pytest.raises(ConfigError, match="oauth_cb"):
        wired(SASL, {"sasl.mechanism": "OAUTHBEARER"})


@pytest.mark.parametrize("ask", ["token", "extensions"])
def test_function_that_gives_no_token_for_the_moment_is_asked_again_with_the_next_connection(ask: str) -> None:
    """As librdkafka's clients do; any other error would end the worker."""

    def refused(_: str) -> NoReturn:
        raise KeyError("access_token")

    found = wired(SASL, {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": refused})

    with pytest.raises(KafkaConnectionError, match=r"'oauth_cb' gave no token: KeyError\('access_token'\)"):
        getattr(found["sasl_oauth_token_provider"], ask)()


TAKEN = {
    "enable.ssl.certificate.verification",
    "oauth_cb",
    "sasl.kerberos.service.name",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.oauthbearer.config",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.cipher.suites",
    "ssl.crl.location",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
}
TICKETS = {
    "sasl.kerberos.keytab",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal",
}
"""Of the command by which librdkafka fetches tickets: the member finds them in the same cache."""

SECURITY = sorted(
    name
    for name, key in LIBRDKAFKA_KEYS.items()
    if name.startswith(("security.", "sasl.", "ssl.", "enable.sasl.", "enable.ssl.", "https.", "oauth"))
    and key.kind is not Kind.NATIVE
)


def test_the_settings_that_are_taken_over_exist() -> None:
    assert set(SECURITY) >= TAKEN | TICKETS


@pytest.mark.parametrize("key", [name for name in SECURITY if name not in TAKEN | TICKETS])
def test_every_other_setting_of_security_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError, match=f"'{key}'.*;"):
        wired(SSL, {key: True if LIBRDKAFKA_KEYS[key].kind is Kind.FLAG else 7})
