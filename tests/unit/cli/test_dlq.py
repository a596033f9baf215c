"""``pykstreams dlq`` as far as it needs no brokers: what is refused, and how letters read."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pykstreams.cli.app import cli
from pykstreams.cli.letter_texts import Text, as_data, as_text, plain, read_text, shown_by, time_text
from pykstreams.runtime.dead_letters.replay import Letters
from tests.unit.runtime.dead_letters.test_letters import letter


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["dlq", *arguments], env={"PYKSTREAMS_BOOTSTRAP_SERVERS": None})
    return result.exit_code, result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list"], "Missing argument 'TOPIC...'"),
        (["list", "dead"], "no brokers are named; give --bootstrap-servers HOST:PORT, or bootstrap.servers in a file"),
        (["show", "dead", "--bootstrap-servers", "a:1", "--offset", "7"], "'7' is no place of a letter; write 0:17"),
        (["show", "dead", "--bootstrap-servers", "a:1", "--since", "now"], "'now' is no time"),
        (
            ["show", "dead", "--bootstrap-servers", "a:1", "--key-serde", "lang"],
            "'lang' is no serde",
        ),
        (["replay", "dead", "--bootstrap-servers", "a:1", "--set", "poll.mss=1"], "poll.mss"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: list[str], said: str) -> None:
    code, text = run(*arguments)

    assert code == 2
    assert said in text


def test_brokers_that_cannot_be_reached_have_their_exit_code() -> None:
    code, text = run("list", "dead", "--bootstrap-servers", "127.0.0.1:1", "--set", "task.timeout.ms=100")

    assert code == 3, text


def test_a_letter_reads_as_what_was_where_and_why() -> None:
    text = shown_by(None, "dead", "")
    tried = (("h", None), ("__streams.errors.attempts", b"3"), ("__streams.errors.first.failure", b"1000"))
    lines = as_text(letter(timestamp=1000, headers=tried), text, text).splitlines()

    assert lines[:7] == [
        "dead-1 offset 7, 1970-01-01T00:00:01.000Z",
        "  from       orders-3 offset 9",
        "  key        k",
        "  value      v",
        "  header     h: null",
        "  error      builtins.ConnectionError: no answer",
        "  attempts   3, first failed 1970-01-01T00:00:01.000Z",
    ]
    assert "  ConnectionError: no answer" in lines


@pytest.mark.parametrize(
    ("serde", "data", "text"),
    [
        (None, "täglich".encode(), "täglich"),
        (None, b"\x00\x07", "0x0007"),
        (None, b"\xff", "0xff"),
        (None, None, None),
        ("long", (7).to_bytes(8, "big"), "7"),
        ("string", b"tea", "tea"),
        ("pykstreams.serdes:JsonSerde", b'{"a": 1}', '{"a": 1}'),
        ("long", None, None),
    ],
)
def test_keys_and_values_are_shown_by_a_serde_or_as_text_or_in_hexadecimal(
    serde: str | None, data: Any, text: str | None
) -> None:
    assert shown_by(serde, "dead", "--value-serde")(data, ()) == Text(text)


def test_what_a_serde_cannot_read_is_shown_without_it() -> None:
    shown = shown_by("long", "dead", "--value-serde")(b"tea", ())

    assert shown.text == "tea"
    assert (shown.unread or "").startswith("not long: LongSerde() cannot read")
    assert str(shown) == f"tea ({shown.unread})"


def test_what_a_serde_of_json_reads_is_shown_as_json() -> None:
    shown = shown_by("pykstreams.serdes:JsonSerde", "letters", "--value-serde")
    assert str(shown(b'{"name":"t\xc3\xa9","sold":true,"at":null}', ())) == '{"name": "té", "sold": true, "at": null}'
    assert str(shown(b'["a",1]', ())) == '["a", 1]'
    assert str(shown(b"null", ())) == "null"


def test_what_a_serde_reads_with_keys_that_json_has_not_is_shown_as_text() -> None:
    value = {("a", 1): "x"}

    assert read_text(value) == str(value)


def test_for_programs_a_value_and_why_it_could_not_be_read_are_apart() -> None:
    text, number = shown_by(None, "dead", "--key-serde"), shown_by("long", "dead", "--value-serde")
    data = as_data(letter(), text, number)

    assert (data["key"], data["key_unread"], data["value"]) == ("k", None, "v")
    assert str(data["value_unread"]).startswith("not long: LongSerde() cannot read")


def test_a_serde_that_is_none_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="nowhere"):
        shown_by("nowhere:Serde", "dead", "--value-serde")


def test_times_that_nobody_knows_are_unknown() -> None:
    assert (time_text(-1), plain(b"a\tb")) == ("unknown", "a\tb")


@pytest.mark.parametrize("by", ["hour", "day"])
def test_letters_of_a_time_without_a_date_are_counted(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a record whose timestamp is in microseconds, for instance."""
    letters = [letter(timestamp=1_767_225_600_123_456), letter(timestamp=-1), letter(timestamp=1000)]
    monkeypatch.setattr(Letters, "of", lambda config, topic: letters)
    command = ["dlq", "list", "dead", "--bootstrap-servers", "a:1", "--format", "json", "--by", by]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)

    found = [(row[by], row["last"]) for row in json.loads(result.stdout)]
    assert found == [
        ("1767225600123456 ms", "1767225600123456 ms"),
        ({"hour": "1970-01-01T00", "day": "1970-01-01"}[by], "1970-01-01T00:00:01.000Z"),
        ("unknown", "unknown"),
    ]


def test_letters_are_not_replayed_into_their_own_topic() -> None:
    code, said = run("replay", "orders-dead", "--to", "orders-dead", "--execute")

    assert code == 2
    assert "is the topic of the letters themselves" in said


@pytest.mark.parametrize("options", [("--execute", "--dry-run"), ("--dry-run", "--execute")], ids=str)
def test_replay_that_is_to_send_and_not_to_send_is_refused(options: tuple[str, ...]) -> None:
    code, said = run("replay", "orders-dead", *options)

    assert code == 2
    assert "--dry-run and --execute contradict each other; give one of them" in said
