"""``pykstreams check`` on a real broker: questions are answered, missing topics are found, and made by ``topics``."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from pykstreams.cli.app import cli
from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.checks.clock_checks import clock_findings
from pykstreams.runtime.checks.cluster_checks import protocol_findings
from pykstreams.runtime.clients.inspection.cluster_facts import ClusterFacts
from tests.brokers.brokers import create_topic
from tests.brokers.secured import USER, SecuredBroker, secured_broker
from tests.integration.workers import PATIENCE_S

pytestmark = pytest.mark.integration


def test_check_finds_what_topics_create_cures(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> None:
    name = make_name("check")
    file = tmp_path / "app.py"
    file.write_text(
        f"""
from pykstreams import Serdes, StreamsBuilder
application_id = "{name}"
config = {{"default.key.serde": Serdes.string(), "default.value.serde": Serdes.string()}}
builder = StreamsBuilder()
builder.stream("{name}-in").group_by(lambda key, value: value).count().to_stream().to("{name}-out")
""",
        encoding="utf-8",
    )
    settings = [str(file), "--bootstrap-servers", bootstrap_servers]
    runner = CliRunner()
    checking = ["check", *settings, "--set", "group.protocol=streams", "--set", "processing.guarantee=exactly_once_v2"]

    before = runner.invoke(cli, checking)
    made = runner.invoke(cli, ["topics", *settings, "--create", "--partitions", "3", "--replication-factor", "1"])
    after = runner.invoke(cli, checking)

    assert before.exit_code == 2
    assert f"error [topics] {name}-in: does not exist" in before.output
    assert f"error [topics] {name}-out: does not exist" in before.output
    assert "not checked" not in before.output
    assert made.exit_code == 0, made.output
    assert [line.rpartition(" with ")[2] for line in made.output.splitlines()] == ["3 partitions"] * 4
    assert after.exit_code == 0, after.output
    assert after.output.splitlines()[-1].startswith("errors: 0")


class ClockAhead:
    """The clock of a machine that is an hour ahead."""

    def now_ms(self) -> int:
        return SystemClock().now_ms() + 3_600_000

    def monotonic(self) -> float:
        return SystemClock().monotonic()


@pytest.fixture(scope="module")
def guarded_broker() -> Iterator[SecuredBroker]:
    """A broker with an authorizer, which allows the user of SCRAM nothing yet, and those of the plain listener all."""
    with secured_broker(
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "min.insync.replicas": "2",
            "group.min.session.timeout.ms": "10000",
        }
    ) as found:
        yield found


def allow(broker: SecuredBroker, operation: AclOperation, resource: ResourceType, name: str) -> None:
    prefixed = ResourcePatternType.PREFIXED
    binding = AclBinding(resource, name, prefixed, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
    admin = AdminClient({"bootstrap.servers": broker.plain})
    for done in admin.create_acls([binding]).values():
        done.result(30)


def wait_for(ask: Callable[[], object], wanted: object) -> None:
    """Waits until brokers have heard of what was changed in their cluster."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := ask()) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


@contextlib.contextmanager
def facts_of(settings: Mapping[str, object], clock: Clock | None = None) -> Iterator[ClusterFacts]:
    facts = ClusterFacts.open(StreamsConfig(settings), "looks", clock or SystemClock())
    try:
        yield facts
    finally:
        facts.close()


@pytest.mark.slow
def test_rights_of_group_and_transactions_are_found_as_they_are_given(guarded_broker: SecuredBroker) -> None:
    application = {"application.id": "guarded", **guarded_broker.scram}

    with facts_of(application) as facts:
        assert facts.group_rights() == frozenset()
        assert not facts.may_write_transactions("guarded-check")

        allow(guarded_broker, AclOperation.DESCRIBE, ResourceType.GROUP, "guarded")
        wait_for(facts.group_rights, {"DESCRIBE"})
        allow(guarded_broker, AclOperation.READ, ResourceType.GROUP, "guarded")
        wait_for(facts.group_rights, {"DESCRIBE", "READ"})
        allow(guarded_broker, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "guarded-")
        wait_for(lambda: facts.may_write_transactions("guarded-check"), True)

        with pytest.raises(ClusterError, match="asking for the time of the controller failed"):
            facts.controller_clock()


@pytest.mark.slow
def test_clock_of_the_controller_is_found_beside_one_that_is_ahead(guarded_broker: SecuredBroker) -> None:
    plain = {"application.id": "clock", "bootstrap.servers": guarded_broker.plain}
    with facts_of(plain) as right, facts_of(plain, ClockAhead()) as ahead:
        assert list(clock_findings(right.controller_clock())) == []
        (found,) = clock_findings(ahead.controller_clock())

    assert re.match(r"this machine is 3(600|59\d)\.\d s ahead of the controller", found.what)


@pytest.mark.slow
def test_streams_groups_that_are_switched_off_are_found(guarded_broker: SecuredBroker) -> None:
    settings = {"application.id": "off", "bootstrap.servers": guarded_broker.plain, "group.protocol": "streams"}
    config = StreamsConfig(settings)
    with facts_of(settings) as facts:
        assert list(protocol_findings(config, facts.protocols())) == []

        where = ("--bootstrap-server", guarded_broker.plain)
        feature = ("downgrade", "--feature", "streams.version=0")
        guarded_broker.tool("org.apache.kafka.tools.FeatureCommand", *where, *feature)

        wait_for(lambda: [one.check for one in protocol_findings(config, facts.protocols())], ["brokers"])


@pytest.mark.slow
def test_limits_of_brokers_are_found(guarded_broker: SecuredBroker, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(
        """
from pykstreams import Serdes, StreamsBuilder
application_id = "limits"
config = {"default.key.serde": Serdes.string(), "default.value.serde": Serdes.string()}
builder = StreamsBuilder()
builder.stream("limits-in").group_by_key().count()
""",
        encoding="utf-8",
    )
    create_topic(guarded_broker.plain, "limits-in", partitions=1)

    result = CliRunner().invoke(cli, ["check", str(file), "--bootstrap-servers", guarded_broker.plain])

    assert result.exit_code == 2
    assert "error [settings] session.timeout.ms: is 6000 ms, and the brokers take no member with less than 10000" in (
        result.output
    )
    assert "1 replicas when they are created, and the brokers take no record before 2 have it" in result.output
    assert "not checked" not in result.output
