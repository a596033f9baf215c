"""``pykstreams topics``: the partitions of repartition topics follow from what they are joined with, as at run time."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pykstreams import KTable, Repartitioned, StreamsBuilder, StreamsConfig
from pykstreams.cli import topics as topics_module
from pykstreams.cli.app import cli
from pykstreams.cli.topics import planned_topics

CONFIG = {"application.id": "app", "bootstrap.servers": "localhost:9092"}


def both(left: str, right: str) -> str:
    return left + right


def same_key(key: str, value: str) -> str:
    return key


def itself(value: str) -> str:
    return value


def partitions_of(builder: StreamsBuilder) -> dict[str, str]:
    plan = builder.build().plan(StreamsConfig(CONFIG))
    found = planned_topics(plan, {})
    return {topic.name.removeprefix("app-"): topic.partitions_text for topic in found if topic.kind == "repartition"}


def table(builder: StreamsBuilder, topic: str, partitions: int | None) -> KTable[str, str]:
    return builder.stream(topic, str, str).repartition(Repartitioned(num_partitions=partitions, name=topic)).to_table()


def test_topics_of_a_foreign_key_join_have_the_partitions_of_the_table_that_they_meet() -> None:
    builder = StreamsBuilder()
    left, right = table(builder, "left", 6), table(builder, "right", 3)
    left.join(right, both, foreign_key_extractor=itself, name="fk").to_stream().to("out")

    assert partitions_of(builder) == {
        "fk-subscription-registration-topic": "3",
        "fk-subscription-response-topic": "6",
        "left-repartition": "6",
        "right-repartition": "3",
    }


def test_a_stream_that_is_repartitioned_for_a_join_has_the_partitions_of_the_table() -> None:
    builder = StreamsBuilder()
    customers = builder.table("customers", str, str)
    orders = builder.stream("orders", str, str).repartition(Repartitioned(num_partitions=6, name="six"))
    orders.select_key(same_key).join(customers, both).to("out")

    assert partitions_of(builder) == {
        "KSTREAM-KEY-SELECT-0000000007-repartition": "as customers",
        "six-repartition": "6",
    }


@pytest.mark.parametrize("first", ["a", "b"])
def test_topics_that_are_joined_and_both_free_have_as_many_as_the_largest_that_is_read(first: str) -> None:
    builder = StreamsBuilder()
    one, other = (table(builder, topic, None) for topic in (("a", "b") if first == "a" else ("b", "a")))
    one.join(other, both).to_stream().to("out")

    assert partitions_of(builder) == {"a-repartition": "most of a, b", "b-repartition": "most of a, b"}


SCRIPT = """
from pykstreams import StreamsBuilder
application_id = "shop"
builder = StreamsBuilder()
builder.stream("orders", str, str).to("bills")
"""


def invoke(folder: Path, *options: str) -> Result:
    script = folder / "shop_topics.py"
    script.write_text(SCRIPT, encoding="utf-8")
    return CliRunner(env={}).invoke(cli, ["topics", str(script), "--bootstrap-servers", "a:1", *options])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--create", "--acls"], "--create and --acls contradict each other"),
        (["--create", "--format", "json"], "--format is for the list of topics"),
        (["--acls", "--format", "json"], "--format is for the list of topics"),
        (["--partitions", "4"], "--partitions is for --create"),
        (["--acls", "--partitions", "3", "--replication-factor", "1"], "--partitions and --replication-factor are for"),
        (["--principal", "User:a"], "--principal is for --acls"),
        (["--create", "--principal", "User:a"], "--principal is for --acls"),
        (["--acls", "--principal", "nobody"], "'nobody' names no kind of principal; write User:nobody"),
        (["--acls", "--principal", "User:"], "'User:' names no kind of principal"),
        (["--acls", "--principal", ":a"], "':a' names no kind of principal"),
    ],
    ids=str,
)
def test_options_that_would_do_nothing_or_no_good_are_refused(options: list[str], text: str, tmp_path: Path) -> None:
    result = invoke(tmp_path, *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert text in " ".join(result.stderr.split())


def test_principal_of_any_kind_is_taken(tmp_path: Path) -> None:
    result = invoke(tmp_path, "--acls", "--principal", "Group:CN=till, O=shop")

    assert (result.exit_code, result.stderr) == (0, "")
    assert "--allow-principal 'Group:CN=till, O=shop'" in result.stdout


def test_that_no_topic_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_module, "_created", lambda *_: iter(()))
    result = invoke(tmp_path, "--create")

    assert (result.exit_code, result.stdout) == (0, "no topic is missing, so none was created\n")
