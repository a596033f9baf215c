"""``pykstreams dlq`` on a real broker: letters of an application that failed are counted, shown and sent again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Message

from pykstreams.cli.app import cli
from pykstreams.core.handlers import ErrorHandlerContext, dead_letter_record
from pykstreams.core.ids import TaskId
from tests.brokers.brokers import create_topic
from tests.brokers.producers import producer_in_order
from tests.brokers.records import records_of
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0

NUMBERS = '''
    """Copies records of two topics whose values are numbers."""

    from pykstreams import Consumed, LogAndContinueExceptionHandler, Produced, Serdes, StreamsBuilder

    config = {"deserialization.exception.handler": LogAndContinueExceptionHandler}

    def build(config):
        prefix = config["app.prefix"]
        builder = StreamsBuilder()
        given = Consumed(key_serde=Serdes.string(), value_serde=Serdes.long())
        numbers = builder.stream(f"{prefix}-in", given).merge(builder.stream(f"{prefix}-more", given))
        numbers.to(f"{prefix}-out", Produced(key_serde=Serdes.string(), value_serde=Serdes.long()))
        return builder.build()
'''


class Letters:
    """Topics of an application, and the command line."""

    def __init__(self, brokers: str, name: str) -> None:
        self.brokers = brokers
        self.orders, self.bills, self.dead = f"{name}-orders", f"{name}-bills", f"{name}-dead"
        for topic in (self.orders, self.bills, self.dead):
            create_topic(brokers, topic, partitions=3, retention_ms=-1)  # its records are from 1970

    def fail(self, topic: str | None, partition: int, value: str, error: Exception, timestamp: int = 1000) -> None:
        """Writes the letter that the built-in handlers write for a record."""
        headers = (("user", b"1"),)
        context = ErrorHandlerContext(
            topic, partition, 9, headers, "NODE", TaskId(0, partition), timestamp, b"key", value.encode()
        )
        letter = dead_letter_record(self.dead, context, error)
        producer = producer_in_order(self.brokers)
        producer.produce(self.dead, letter.value, letter.key, 1, timestamp=timestamp, headers=list(letter.headers))
        assert producer.flush(30) == 0

    def run(self, *arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(cli, ["dlq", *arguments, "--bootstrap-servers", self.brokers])
        return done.exit_code, done.stdout, done.stderr

    def records(self, topic: str) -> list[Message]:
        return records_of(self.brokers, [topic])

    def records_at_last(self, topic: str, count: int) -> list[Message]:
        """So many records, when the markers of their transactions are written, too."""
        deadline = time.monotonic() + PATIENCE_S
        while len(found := self.records(topic)) < count:
            assert time.monotonic() < deadline, found
        return found


@pytest.fixture
def letters(bootstrap_servers: str, make_name: Callable[[str], str]) -> Letters:
    made = Letters(bootstrap_servers, make_name("letters"))
    made.fail(made.orders, 2, "o1", ConnectionError("no answer"), 1000)
    made.fail(made.bills, 0, "b1", ValueError("no number"), 2000)
    made.fail(made.orders, 2, "o2", ConnectionError("no answer"), 3_600_000)
    made.fail(made.orders, 1, "o3", ValueError("no number"), 4000)
    return made


def test_letters_are_counted_by_error_source_and_time(letters: Letters) -> None:
    code, out, _ = letters.run("list", letters.dead, "--format", "json", "--by", "hour")

    assert code == 0
    found = [(row["exception"], row["source"], row["hour"], row["letters"]) for row in json.loads(out)]
    assert found == [
        ("builtins.ConnectionError", letters.orders, "1970-01-01T00", 1),
        ("builtins.ConnectionError", letters.orders, "1970-01-01T01", 1),
        ("builtins.ValueError", letters.bills, "1970-01-01T00", 1),
        ("builtins.ValueError", letters.orders, "1970-01-01T00", 1),
    ]
    _, table, _ = letters.run("list", letters.dead, "--exception", "ConnectionError")
    assert [line.split() for line in table.splitlines()] == [
        ["topic", "exception", "source", "letters", "replayed", "first", "last"],
        [
            letters.dead,
            "builtins.ConnectionError",
            letters.orders,
            "2",
            "0",
            "1970-01-01T00:00:01.000Z",
            "1970-01-01T01:00:00.000Z",
        ],
    ]


def test_letters_are_shown_with_their_records_and_reasons(letters: Letters) -> None:
    code, out, _ = letters.run("show", letters.dead, "--limit", "1")
    assert code == 0
    assert out.splitlines()[:6] == [
        f"{letters.dead}-1 offset 0, 1970-01-01T00:00:01.000Z",
        f"  from       {letters.orders}-2 offset 9",
        "  key        key",
        "  value      o1",
        "  header     user: 1",
        "  error      builtins.ConnectionError: no answer",
    ]

    _, out, _ = letters.run("show", letters.dead, "--offset", "1:3", "--key-serde", "long", "--format", "json")
    (letter,) = json.loads(out)
    assert (letter["value"], letter["message"], letter["source"]["partition"]) == ("o3", "no number", 1)
    assert (letter["key"], letter["value_unread"]) == ("key", None)
    assert letter["key_unread"].startswith("not long: LongSerde() cannot read")


def test_a_replay_sends_each_letter_once_as_it_was_read(letters: Letters) -> None:
    code, out, said = letters.run("replay", letters.dead)
    assert (code, said) == (0, "nothing was sent; --execute sends\n")
    assert f"2 of builtins.ConnectionError: would be sent to {letters.orders}" in out
    assert letters.records(letters.orders) == []

    code, out, _ = letters.run("replay", letters.dead, "--exception", "ConnectionError", "--execute")
    assert (code, out) == (0, f"2 of builtins.ConnectionError: sent to {letters.orders}\n")
    assert letters.run("replay", letters.dead, "--exception", "ConnectionError", "--execute") == (
        0,
        "",
        f"{letters.dead}: nothing to replay\n",
    )
    code, out, _ = letters.run("replay", letters.dead, "--topic", letters.orders, "--execute")
    assert (code, out) == (0, f"1 of builtins.ValueError: sent to {letters.orders}\n")

    found = letters.records_at_last(letters.orders, 3)
    assert sorted((one.value(), one.partition(), one.timestamp()[1]) for one in found) == [
        (b"o1", 2, 1000),
        (b"o2", 2, 3_600_000),
        (b"o3", 1, 4000),
    ]
    assert all(one.key() == b"key" for one in found)
    assert all(one.headers() == [("user", b"1"), ("__streams.replays", b"1")] for one in found)
    assert letters.records(letters.bills) == []


def test_letters_go_elsewhere_when_they_are_told_to(letters: Letters) -> None:
    letters.fail(None, -1, "nowhere", RuntimeError("in a punctuator"))
    code, out, _ = letters.run("replay", letters.dead, "--exception", "RuntimeError", "--execute")
    assert (code, out) == (
        0,
        "1 of builtins.RuntimeError: not sent, they do not say where they were read; name a topic with --to TOPIC\n",
    )

    code, out, _ = letters.run("replay", letters.dead, "--offset", "1:4", "--to", letters.bills, "--execute")
    assert (code, out) == (0, f"1 of builtins.RuntimeError: sent to {letters.bills}\n")
    code, out, said = letters.run("replay", letters.dead, "--to", "missing", "--execute")
    assert code == 2
    assert "topic 'missing', to which letters of" in said
    assert letters.run("list", "missing")[0] == 2


def test_records_that_cannot_be_decoded_send_no_task_back_under_exactly_once(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> None:
    """Of several inputs the first record is decoded when it is fed, before anything else is done after a commit."""
    name = make_name("decoded")
    for suffix in ("in", "more", "out", "dead"):
        create_topic(bootstrap_servers, f"{name}-{suffix}", partitions=1)
    settings = (
        f"errors.dead.letter.queue.topic.name={name}-dead",
        "processing.guarantee=exactly_once_v2",
        "commit.interval.ms=1",
    )
    app = Workers(bootstrap_servers, name, tmp_path, NUMBERS, 1, settings)
    try:
        app.send(("in", "a", f"{number:8}" if number % 2 else "no number") for number in range(10_000))
        app.start_all(["one"], 1)
        app.wait("all are letters", lambda: len(records_of(bootstrap_servers, [f"{name}-dead"])) == 5_000)
        app.stop("one")
    finally:
        app.end()

    assert "taken up again from their last commit" not in app.log("one")
