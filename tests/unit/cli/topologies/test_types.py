"""``pykstreams types``, which lists types and asks schema registries, and the same findings of ``pykstreams check``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pykstreams.cli.app import cli
from tests.docs.pages import Page
from tests.registries.http_registry import HttpRegistry, http_registry

SCRIPT = """
from pykstreams import Produced, Serdes, StreamsBuilder
from pykstreams.serdes import SchemaRegistryAvroSerde
order = SchemaRegistryAvroSerde({settings!r}, {{"type": "record", "name": "Order", "fields": []}})
application_id = "shop"
builder = StreamsBuilder()
orders = builder.stream("orders", Serdes.string(), Serdes.string()).map_values(lambda value: {{}})
for topic in {topics!r}:
    orders.to(topic, Produced(key_serde=Serdes.string(), value_serde=order))
"""


@pytest.fixture
def registry() -> Iterator[HttpRegistry]:
    with http_registry() as found:
        yield found


@pytest.fixture
def shop(tmp_path: Path, registry: HttpRegistry) -> str:
    """A script that writes to a topic for each outcome but those of registries that do not answer."""
    registry.register("known-value", json.dumps({"type": "record", "name": "Order", "fields": []}))
    for topic in ("wider", "broken"):
        registry.register(f"{topic}-value", '"string"')
    registry.refusals["broken-value"] = ["the field note has no default", "{oldSchema: 'string'}"]
    return script(tmp_path, registry.settings(), "known", "new", "wider", "broken")


def script(folder: Path, settings: object, *topics: str) -> str:
    file = folder / "shop.py"
    file.write_text(SCRIPT.format(settings=settings, topics=topics))
    return str(file)


def called(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


def test_no_registry_is_asked_without_the_flag(shop: str, registry: HttpRegistry) -> None:
    done = called("types", shop)

    assert (done.exit_code, registry.asked) == (0, [])
    assert "subject" not in done.output


def test_each_subject_has_a_line_with_its_outcome(shop: str, registry: HttpRegistry) -> None:
    done = called("types", shop, "--registry")

    head, *lines = done.output[done.output.index("registry ") :].splitlines()
    assert head == f"registry {registry.url}"
    assert [" ".join(line.split()) for line in lines] == [
        "subject known-value registered value of known version 1, id 1",
        "subject new-value new subject value of new the schema would be its first version",
        "subject wider-value new version value of wider the schema is compatible, and would be the next version",
        "subject broken-value incompatible value of broken the registry would refuse the schema: compatibility is "
        "BACKWARD; the field note has no default; change the schema as BACKWARD allows, or write to a new topic",
    ]
    assert done.exit_code == 2
    assert not registry.is_changed()


def test_subjects_that_fit_end_with_success(tmp_path: Path, registry: HttpRegistry) -> None:
    assert called("types", script(tmp_path, registry.settings(), "new"), "--registry").exit_code == 0


def test_programs_get_the_same_facts(shop: str, registry: HttpRegistry) -> None:
    done = called("types", shop, "--registry", "--format", "json")

    found = json.loads(done.output)
    assert found["types"] == json.loads(called("types", shop, "--format", "json").output)
    assert [(one["subject"], one["outcome"], one["version"], one["schema_id"]) for one in found["subjects"]] == [
        ("known-value", "registered", 1, 1),
        ("new-value", "new subject", None, None),
        ("wider-value", "new version", None, None),
        ("broken-value", "incompatible", None, None),
    ]
    assert found["subjects"][3] | {"what": "", "cure": ""} == {
        "registry": registry.url,
        "subject": "broken-value",
        "used_for": ["value of broken"],
        "outcome": "incompatible",
        "what": "",
        "cure": "",
        "reasons": ["the field note has no default", "{oldSchema: 'string'}"],
        "version": None,
        "schema_id": None,
    }
    assert done.exit_code == 2


def test_refused_credentials_end_with_an_error_and_are_not_shown(tmp_path: Path, registry: HttpRegistry) -> None:
    registry.users["ann"] = "right"
    settings = registry.settings(basic_auth_user_info="ann:wrong-password")

    for form in ("text", "json"):
        done = called("types", script(tmp_path, settings, "new"), "--registry", "--format", form)

        assert done.exit_code == 2
        assert "the registry refuses the credentials (HTTP 401: Unauthorized)" in done.output
        assert "wrong-password" not in done.output


def test_a_topology_without_registries_says_so(tmp_path: Path, registry: HttpRegistry) -> None:
    done = called("types", script(tmp_path, registry.settings()), "--registry")

    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "no serde that writes asks a schema registry")


def test_what_the_guide_shows_is_what_is_printed(tmp_path: Path, registry: HttpRegistry) -> None:
    page = Page("docs/guides/types.md")
    registry.register("orders-by-customer-value", json.dumps({"type": "record", "name": "Order", "fields": []}))
    registry.register("revenue-value", '"string"')
    registry.refusals["revenue-value"] = ["the field note has no default"]
    written = script(tmp_path, registry.settings(), "orders-by-customer", "revenue", "bills")

    done = called("types", written, "--registry")

    (shown,) = [block.text for block in page.of("text")]
    assert shown in done.output


def test_check_finds_subjects_too(shop: str, registry: HttpRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = SimpleNamespace(wait_for_tools=lambda: None, close=lambda: None)
    opens: Any = staticmethod(lambda *_: cluster)
    monkeypatch.setattr("pykstreams.runtime.clients.admin.ClusterAdmin.open", opens)
    monkeypatch.setattr("pykstreams.runtime.clients.inspection.cluster_facts.ClusterFacts.open", opens)
    monkeypatch.setattr("pykstreams.runtime.checks.application_check.cluster_findings", lambda *_: [])

    done = called("check", shop, "--bootstrap-servers", "x:1", "--set", "partitioner.check.enable=false")

    assert (
        "error [subjects] broken-value (value of broken): incompatible: the registry would refuse the schema: "
        "compatibility is BACKWARD; the field note has no default" in done.output
    )
    assert done.exit_code == 2
