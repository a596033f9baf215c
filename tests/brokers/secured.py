"""A local broker that is spoken to over TLS: SASL_SSL with SCRAM-SHA-512, and SSL with certificates of both sides.

Authority, certificates and keys are made for one broker and deleted with it. Its plain listener stays open for what a
test does besides: topics, records, the outcome.
"""

from __future__ import annotations

import contextlib
import datetime
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.brokers.local_broker import LocalBrokers, local_brokers
from tests.brokers.ports import free_ports
from tests.brokers.settings import ONE_BROKER

USER = "shop"


class Authority:
    """Makes certificates, as PEM files in a folder.

    :param name: of the authority, and the first part of its files' names.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = folder / f"{name}.pem"
        made = self._signed(self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=None))
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def certify(self, name: str, password: str = "") -> tuple[Path, Path]:
        """Makes a certificate for a holder who is also found as "localhost", and its key, locked by a password."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        hosts = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
        certificate = self._signed(subject, key.public_key(), hosts)
        paths = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        lock = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock))
        return paths

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .sign(self._key, hashes.SHA256())
        )


@dataclass(frozen=True)
class SecuredBroker:
    """A broker with secured listeners, and what clients need for them.

    :param scram, mtls: the settings of a client, with ``bootstrap.servers``.
    :param secrets: what must be read nowhere.
    :param tool: runs one of Kafka's own tools, by its class.
    """

    plain: str
    scram: Mapping[str, str]
    mtls: Mapping[str, str]
    folder: Path
    secrets: tuple[str, ...]
    tool: Callable[..., str]

    def stranger(self) -> Mapping[str, str]:
        """The settings of a client whose certificate is of an authority that the broker does not know."""
        certificate, key = Authority(self.folder, "stranger-authority").certify("stranger")
        others = {name: value for name, value in self.mtls.items() if name != "ssl.key.password"}
        return {**others, "ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}


@contextlib.contextmanager
def secured_broker(more_settings: Mapping[str, str] | None = None) -> Iterator[SecuredBroker]:
    """A ready broker for the length of a block."""
    password, key_password = secrets.token_hex(12), secrets.token_hex(12)
    ports = dict(zip(("SASL_SSL", "SSL"), free_ports(2), strict=True))
    with tempfile.TemporaryDirectory(prefix="secured-") as name:
        folder = Path(name)
        authority = Authority(folder, "authority")
        certificate, key = authority.certify("client", key_password)
        settings = {**ONE_BROKER, **_broker_settings(folder, authority), **(more_settings or {})}
        with local_brokers(settings, more_listeners=ports) as brokers:
            _add_user(brokers, password)
            trust = {"ssl.ca.location": str(authority.certificate)}
            yield SecuredBroker(
                brokers.bootstrap_servers,
                {
                    "bootstrap.servers": f"localhost:{ports['SASL_SSL']}",
                    "security.protocol": "SASL_SSL",
                    "sasl.mechanism": "SCRAM-SHA-512",
                    "sasl.username": USER,
                    "sasl.password": password,
                    **trust,
                },
                {
                    "bootstrap.servers": f"localhost:{ports['SSL']}",
                    "security.protocol": "SSL",
                    "ssl.certificate.location": str(certificate),
                    "ssl.key.location": str(key),
                    "ssl.key.password": key_password,
                    **trust,
                },
                folder,
                (password, key_password, *_lines_of_key(key)),
                brokers.tool,
            )


def _broker_settings(folder: Path, authority: Authority) -> dict[str, str]:
    certificate, key = authority.certify("broker")
    store = folder / "broker-store.pem"  # a store of Kafka's is the key and its certificate in one file
    store.write_text(key.read_text() + certificate.read_text())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        # a wrong password is answered late by default, against those who guess
        "connection.failed.authentication.delay.ms": "10",
    }


def _add_user(brokers: LocalBrokers, password: str) -> None:
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(USER, how, password.encode())
    for done in admin.alter_user_scram_credentials([change]).values():
        done.result(30)


def _lines_of_key(key: Path) -> list[str]:
    return [line for line in key.read_text().splitlines() if not line.startswith("-----")]
