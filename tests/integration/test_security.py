"""Brokers that only speak over TLS to those they know: SASL_SSL with SCRAM-SHA-512, and certificates of both sides.

Every client must have the settings: those of librdkafka, and the member of the group, which is our own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.clients.coordinators.coordinator_requests import MemberOf
from pykstreams.runtime.clients.coordinators.group_coordinator import GroupCoordinator
from pykstreams.runtime.clients.errors import GroupError
from tests.brokers.brokers import create_topic
from tests.brokers.records import key_of, records_of
from tests.brokers.secured import SecuredBroker, secured_broker
from tests.integration.workers import PATIENCE_S, Workers

pytestmark = pytest.mark.slow

PARTITIONS = 2
WORDS = ["tea", "milk", "tea", "sugar", "tea", "milk"]
COUNTS = {"tea": "3", "milk": "2", "sugar": "1"}

SCRIPT = '''
    """Counts words: through a repartition topic, into a store with a changelog."""

    from pykstreams import Consumed, Grouped, Produced, Serdes, StreamsBuilder

    text = Serdes.string()

    def build(config):
        prefix = config["app.prefix"]
        builder = StreamsBuilder()
        (
            builder.stream(f"{prefix}-in", Consumed(key_serde=text, value_serde=text))
            .group_by(lambda key, word: word, Grouped(key_serde=text, value_serde=text))
            .count()
            .to_stream()
            .map_values(str)
            .to(f"{prefix}-out", Produced(key_serde=text, value_serde=text))
        )
        return builder.build()
'''


@pytest.fixture(scope="module")
def broker() -> Iterator[SecuredBroker]:
    with secured_broker() as found:
        yield found


@pytest.fixture
def make_counting(
    broker: SecuredBroker, make_name: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., Workers]]:
    made: list[Workers] = []

    def make(client: Mapping[str, str], **settings: str) -> Workers:
        """The application; it gets the settings of the client from a file, which other users cannot read."""
        name = make_name("secured")
        for suffix in ("in", "out"):
            create_topic(broker.plain, f"{name}-{suffix}", partitions=PARTITIONS)
        lines = {**client, **{key.replace("_", "."): value for key, value in settings.items()}}
        file = tmp_path / "client.properties"
        file.touch(0o600)
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items() if key != "bootstrap.servers"))
        options = ("--config", str(file), "--bootstrap-servers", client["bootstrap.servers"], "--log-level", "debug")
        everything = (*options, "--log-level-libraries", "debug")
        made.append(Workers(broker.plain, name, tmp_path, SCRIPT, PARTITIONS, options=everything))
        return made[-1]

    yield make
    for app in made:
        app.end()


def counts_of(app: Workers) -> dict[str, str]:
    return {
        key_of(record).decode(): (record.value() or b"").decode()
        for record in records_of(app.brokers, [app.topic("out")])
    }


def counts_words_without_a_secret_said(app: Workers, broker: SecuredBroker) -> None:
    app.start_all(["one"], 2 * PARTITIONS)
    app.send(("in", f"line {number}", word) for number, word in enumerate(WORDS))
    app.wait("all words are counted", lambda: counts_of(app) == COUNTS)
    app.stop("one")
    log = app.log("one")
    assert "task 1_0 runs" in log
    assert not [secret for secret in broker.secrets if secret in log]


@pytest.mark.parametrize(
    ("client", "protocol", "guarantee"),
    [
        pytest.param("scram", "classic", "exactly_once_v2", id="scram-classic-exactly_once_v2"),
        *(
            pytest.param(client, protocol, guarantee, id=f"{client}-{protocol}-{guarantee}", marks=pytest.mark.nightly)
            for client in ("scram", "mtls")
            for protocol in ("classic", "streams")
            for guarantee in ("at_least_once", "exactly_once_v2")
            if (client, protocol, guarantee) != ("scram", "classic", "exactly_once_v2")
        ),
    ],
)
def test_an_application_with_state_runs_over_secured_listeners(
    client: str, protocol: str, guarantee: str, broker: SecuredBroker, make_counting: Callable[..., Workers]
) -> None:
    app = make_counting(getattr(broker, client), group_protocol=protocol, processing_guarantee=guarantee)
    counts_words_without_a_secret_said(app, broker)


def refusal(app: Workers) -> str:
    """The log of a worker that must end by itself with the code for the cluster, well before task.timeout.ms."""
    app.start("one")
    assert app.processes["one"].wait(60) == 3, app.log("one")[-6000:]
    return app.log("one")


def own_member_refused(client: Mapping[str, str], expected: str) -> None:
    """Waits until the member of the group says why it is refused: a broker may close a connection without a word."""
    config = StreamsConfig({"application.id": "refused", "request.timeout.ms": "5000", **client})
    member = GroupCoordinator.open(config, "refused")
    deadline = time.monotonic() + PATIENCE_S
    said = ""
    while expected not in said:
        assert time.monotonic() < deadline, said
        with pytest.raises(GroupError) as raised:
            member.heartbeat(MemberOf(1, "somebody"))
        said = str(raised.value)
        assert not [secret for name, secret in client.items() if "password" in name and secret in said]
    member.close()


def test_a_wrong_password_ends_a_start_with_what_to_do(
    broker: SecuredBroker, make_counting: Callable[..., Workers]
) -> None:
    wrong = {**broker.scram, "sasl.password": "opensesame"}
    log = refusal(make_counting(wrong))
    last = log.splitlines()[-1]
    assert f"the brokers at {broker.scram['bootstrap.servers']} do not let this application in" in log
    assert "invalid credentials" in log
    assert "check sasl.mechanism, sasl.username and sasl.password" in log, last
    assert "opensesame" not in log


@pytest.mark.nightly
def test_a_certificate_that_brokers_do_not_trust_ends_a_start_with_what_to_do(
    broker: SecuredBroker, make_counting: Callable[..., Workers]
) -> None:
    stranger = broker.stranger()
    log = refusal(make_counting(stranger))
    assert f"the brokers at {stranger['bootstrap.servers']} do not let this application in" in log
    assert "check that ssl.certificate.location and ssl.key.location name a certificate" in log
    key = Path(stranger["ssl.key.location"]).read_text().splitlines()[1]
    assert key not in log


@pytest.mark.nightly
def test_the_member_of_the_group_says_the_same(broker: SecuredBroker) -> None:
    """A start that looks at the cluster first does not come so far; a password that is changed later does."""
    wrong = {**broker.scram, "sasl.password": "opensesame"}
    own_member_refused(wrong, "check sasl.mechanism, sasl.username and sasl.password")
    stranger = broker.stranger()
    own_member_refused(stranger, "check that ssl.certificate.location and ssl.key.location name a certificate")
    other = {**broker.scram, "ssl.ca.location": broker.mtls["ssl.certificate.location"]}
    own_member_refused(other, "check that ssl.ca.location (or ssl.ca.pem) names the authority")
