"""The settings of librdkafka for the wire layer of the group's member."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from pykstreams.core.errors import ConfigError
from pykstreams.runtime.clients.wire_settings import wire_settings

SERVERS = {"bootstrap.servers": "a:1, b:2"}


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pem")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subject = ["-subj", "/CN=test", "-days", "2", "-nodes", "-newkey", "rsa:2048"]
    command = ["openssl", "req", "-x509", *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def context(**settings: object) -> ssl.SSLContext:
    found = wire_settings(
        {**SERVERS, "security.protocol": "ssl", **{key.replace("_", "."): value for key, value in settings.items()}},
        embedded=False,
    )["ssl_context"]
    assert isinstance(found, ssl.SSLContext)
    return found


def test_without_security_only_the_servers_are_named() -> None:
    found = wire_settings(SERVERS, embedded=False)
    assert found["bootstrap_servers"] == ["a:1", "b:2"]
    assert found["security_protocol"] == "PLAINTEXT"
    assert "ssl_context" not in found


def test_only_the_named_authorities_are_trusted(pem: tuple[Path, Path]) -> None:
    assert len(context(ssl_ca_location=str(pem[0])).get_ca_certs()) == 1
    assert len(context(ssl_ca_pem=pem[0].read_text()).get_ca_certs()) == 1


def test_a_certificate_of_the_member_is_taken_over(pem: tuple[Path, Path]) -> None:
    certificate, key = pem
    assert context(ssl_certificate_location=str(certificate), ssl_key_location=str(key))
    with pytest.raises(ConfigError, match="could not be read"):
        context(ssl_certificate_location=str(certificate), ssl_key_location=str(certificate))


def test_hosts_and_certificates_are_verified_unless_that_is_switched_off() -> None:
    assert context().check_hostname
    assert context().verify_mode == ssl.CERT_REQUIRED
    unnamed = context(ssl_endpoint_identification_algorithm="none")
    assert (unnamed.check_hostname, unnamed.verify_mode) == (False, ssl.CERT_REQUIRED)
    assert context(enable_ssl_certificate_verification=False).verify_mode == ssl.CERT_NONE


@pytest.mark.parametrize(
    "key",
    ["ssl.keystore.location", "ssl.engine.location", "ssl.providers", "ssl.certificate.pem", "ssl.key.pem"],
)
def test_what_cannot_be_taken_over_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        wire_settings({**SERVERS, "security.protocol": "ssl", key: "x"}, embedded=False)


def test_passwords_are_taken_over() -> None:
    settings = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "scram-sha-256"}
    found = wire_settings({**SERVERS, **settings, "sasl.username": "me", "sasl.password": "pw"}, embedded=False)
    assert (found["sasl_mechanism"], found["sasl_plain_username"], found["sasl_plain_password"]) == (
        "SCRAM-SHA-256",
        "me",
        "pw",
    )


def test_tokens_come_from_the_function_of_the_user() -> None:
    settings = {**SERVERS, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    with pytest.raises(ConfigError, match="oauth_cb"):
        wire_settings(settings, embedded=False)
    config = {"sasl.oauthbearer.config": "c", "oauth_cb": lambda text: (f"token of {text}", 1.0)}
    assert wire_settings({**settings, **config}, embedded=False)["sasl_oauth_token_provider"].token() == "token of c"
