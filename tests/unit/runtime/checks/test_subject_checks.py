"""All subjects of a topology, asked of its registries within one limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pykstreams import Produced, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.runtime.checks.finding import Severity
from pykstreams.runtime.checks.subject_checks import SubjectCheck, subject_checks, subject_findings
from pykstreams.serdes import SchemaRegistryAvroSerde
from pykstreams.serdes.registry.subject_answers import Outcome
from tests.registries.http_registry import HttpRegistry, http_registry

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
BILL = {"type": "record", "name": "Bill", "fields": [{"name": "id", "type": "long"}]}
CONFIG = StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1"})


@pytest.fixture
def registry() -> Iterator[HttpRegistry]:
    with http_registry() as found:
        yield found


def serde(
    registry: HttpRegistry,
    schema: dict[str, Any] = ORDER,
    *,
    is_key: bool = False,
    config: dict[str, Any] | None = None,
) -> Any:
    return SchemaRegistryAvroSerde(registry.settings(), schema, is_key=is_key, serializer_config=config)


def written(*sinks: tuple[str, Any, Any], limit_s: float = 60) -> list[SubjectCheck]:
    """The checks of a topology that writes to these topics, with these serdes."""
    builder = StreamsBuilder()
    source = builder.stream("in", Serdes.string(), Serdes.string())
    for topic, keys, values in sinks:
        source.map(lambda key, value: (key, value)).to(topic, Produced(key_serde=keys, value_serde=values))
    return subject_checks(builder.build().plan(CONFIG), CONFIG, limit_s=limit_s)


def test_each_subject_has_one_check_that_tells_what_it_is_for(registry: HttpRegistry) -> None:
    by_record = serde(registry, config={"subject.name.strategy.type": "RECORD"})
    registry.register("orders-key", '"string"')

    checks = written(("orders", serde(registry, is_key=True), by_record), ("copies", Serdes.string(), by_record))

    assert {one.subject: (one.answer.outcome, one.used_for) for one in checks} == {
        "orders-key": (Outcome.NEW_VERSION, ("key of orders",)),
        "Order": (Outcome.NEW_SUBJECT, ("value of orders", "value of copies")),
    }
    assert {one.registry for one in checks} == {registry.url}
    assert not registry.is_changed()


def test_two_new_schemas_of_one_subject_are_not_known_to_fit_each_other(registry: HttpRegistry) -> None:
    """The serde of the keys does not say that they are keys."""
    checks = written(("orders", serde(registry, BILL), serde(registry, ORDER)))

    assert [(one.subject, one.answer.outcome) for one in checks] == [("orders-value", Outcome.NOT_ASKED)] * 2
    assert "would register 2 schemas there" in checks[0].answer.what
    assert "is_key=True" in checks[0].answer.cure


def test_a_registry_that_does_not_answer_is_left_at_the_limit(registry: HttpRegistry) -> None:
    registry.goes_on.clear()

    (check,) = written(("orders", Serdes.string(), serde(registry)), limit_s=0.01)
    registry.goes_on.set()

    assert (check.used_for, check.answer.outcome) == (("value of orders",), Outcome.NOT_ASKED)
    assert check.answer.what == "the registry did not answer within 0.01 s"


def test_a_registry_that_is_down_is_told_beside_one_that_answers(registry: HttpRegistry) -> None:
    with http_registry() as gone:
        pass

    checks = written(
        ("orders", Serdes.string(), serde(gone)),
        ("bills", Serdes.string(), serde(gone)),
        ("copies", Serdes.string(), serde(registry)),
    )

    assert {(one.registry, one.subject): one.answer.outcome for one in checks} == {
        (gone.url, "orders-value"): Outcome.NOT_ASKED,
        (gone.url, "bills-value"): Outcome.NOT_ASKED,
        (registry.url, "copies-value"): Outcome.NEW_SUBJECT,
    }
    assert checks[1].answer.what.startswith("the registry does not answer (ConnectError: ")


def test_a_url_with_credentials_is_shown_without_them(registry: HttpRegistry) -> None:
    registry.users["ann"] = "right"
    url = registry.url.replace("://", "://ann:right@")
    values: Any = SchemaRegistryAvroSerde({"url": url}, ORDER)

    checks = written(("orders", Serdes.string(), values))

    assert [(one.registry, one.answer.outcome) for one in checks] == [(registry.url, Outcome.NEW_SUBJECT)]


def test_what_cannot_be_checked_is_told(registry: HttpRegistry) -> None:
    builder = StreamsBuilder()
    source = builder.stream("in", Serdes.string(), Serdes.string())
    values = serde(registry)
    orders = source.map_values(lambda value: {"id": 1})
    orders.to(lambda key, value, context: "x", Produced(key_serde=Serdes.string(), value_serde=values))

    (check,) = subject_checks(builder.build().plan(CONFIG), CONFIG)

    assert (check.answer.outcome, check.answer.what) == (Outcome.NOT_CHECKED, "the topic is chosen per record")


def test_no_registry_is_asked_where_no_serde_has_one() -> None:
    assert written(("out", Serdes.string(), Serdes.string())) == []


def test_findings_are_errors_where_records_cannot_be_written_and_warnings_where_that_is_not_known(
    registry: HttpRegistry,
) -> None:
    registry.register("orders-value", '"string"')
    registry.refusals["orders-value"] = ["the field note has no default"]
    with http_registry() as gone:
        pass

    checks = written(
        ("orders", Serdes.string(), serde(registry)),
        ("bills", Serdes.string(), serde(registry)),
        ("lost", Serdes.string(), serde(gone)),
    )

    incompatible, unknown = subject_findings(checks)
    assert (incompatible.severity, incompatible.where) == (Severity.ERROR, "orders-value (value of orders)")
    assert incompatible.what == (
        "incompatible: the registry would refuse the schema: compatibility is BACKWARD; the field note has no default"
    )
    assert (unknown.severity, unknown.where) == (Severity.WARNING, "lost-value (value of lost)")
