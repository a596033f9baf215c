"""``pykstreams dlq`` as far as it needs no brokers: what is refused, and how letters read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pykstreams.cli.app import cli
from pykstreams.cli.dead_letters.letter_texts import Text, as_data, as_text, read_text, shown_by, time_or_unknown
from pykstreams.cli.row_texts import plain
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError, MissingSinkTopicError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.inspection.group_tools import GroupMember, GroupView
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.dead_letters.letters import DeadLetter, Selection
from pykstreams.runtime.dead_letters.replay import Letters, Replay
from tests.unit.runtime.dead_letters.test_letters import letter


class Group:
    """A group without members that has replayed nothing, unless it is said otherwise."""

    def __init__(
        self,
        *,
        members: tuple[GroupMember, ...] = (),
        offsets: Offsets | None = None,
        failure: ClusterError | None = None,
    ) -> None:
        self._members = members
        self._offsets = offsets or {}
        self._failure = failure

    def view(self) -> GroupView:
        return GroupView("classic", self._members, "Stable" if self._members else "Dead")

    def committed(self, partitions: Collection[TopicPartition], *, stable: bool) -> Offsets:
        if self._failure is not None:
            raise self._failure
        return self._offsets


def put(monkeypatch: pytest.MonkeyPatch, letters: list[DeadLetter], group: Group) -> list[str]:
    """Makes the letters of a topic, and the group of each replay; returns the ids of groups that are asked for."""
    asked: list[str] = []

    @contextmanager
    def opened_group(config: StreamsConfig, *, embedded: bool) -> Iterator[Group]:
        asked.append(config.application_id)
        yield group

    def of(config: StreamsConfig, topic: str) -> Letters:
        places = [TopicPartition(topic, 1)]
        return Letters(config, topic, dict.fromkeys(places, 0), dict.fromkeys(places, 9), {topic: 2})

    monkeypatch.setattr(Letters, "of", of)
    monkeypatch.setattr(Letters, "__iter__", lambda self: iter(letters))
    monkeypatch.setattr("pykstreams.runtime.dead_letters.replay_group.opened_group", opened_group)
    return asked


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
    assert (time_or_unknown(-1), plain(b"a\tb")) == ("unknown", "a\tb")


@pytest.mark.parametrize("by", ["hour", "day"])
def test_letters_of_a_time_without_a_date_are_counted(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a record whose timestamp is in microseconds, for instance."""
    letters = [letter(timestamp=1_767_225_600_123_456), letter(timestamp=-1), letter(timestamp=1000)]
    put(monkeypatch, letters, Group())
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


@pytest.mark.parametrize("words", [(), ("--group", "second")], ids=str)
def test_letters_that_were_replayed_are_counted(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    """All before the offset that the group has committed, and those that the text beside it names."""
    letters = [letter(offset=offset) for offset in range(5)]
    asked = put(monkeypatch, letters, Group(offsets={TopicPartition("dead", 1): (2, "1:2")}))
    command = ["dlq", "list", "dead", "--bootstrap-servers", "a:1", *words]
    table = CliRunner().invoke(cli, command, catch_exceptions=False).stdout.splitlines()
    (row,) = json.loads(CliRunner().invoke(cli, [*command, "--format", "json"], catch_exceptions=False).stdout)

    assert [line.split()[3:5] for line in table] == [["letters", "replayed"], ["5", "3"]]
    assert (row["letters"], row["replayed"]) == (5, 3)
    assert asked == 2 * [words[-1] if words else "dead-replay"]


@pytest.mark.parametrize(
    "group",
    [
        Group(failure=ClusterError("reading the offsets of group 'dead-replay' failed: no right")),
        Group(offsets={TopicPartition("dead", 1): (2, "at work")}),
    ],
    ids=["refused", "of-something-else"],
)
def test_letters_are_listed_where_their_group_cannot_be_read(monkeypatch: pytest.MonkeyPatch, group: Group) -> None:
    put(monkeypatch, [letter()], group)
    command = ["dlq", "list", "dead", "--bootstrap-servers", "a:1"]
    listed = CliRunner().invoke(cli, command, catch_exceptions=False)

    assert (listed.exit_code, listed.stdout.splitlines()[1].split()[3:5]) == (0, ["1", "?"])
    assert listed.stderr.startswith("dead: how many letters were replayed is not known: ")


@pytest.mark.parametrize("words", [(), ("--execute",)], ids=str)
def test_replay_for_the_group_of_an_application_that_runs_is_refused(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    put(monkeypatch, [letter()], Group(members=(GroupMember("m-1", "shop-1", "/10.0.0.1"),)))
    code, said = run("replay", "dead", "--bootstrap-servers", "a:1", "--group", "shop", *words)

    assert code == 3
    assert said.startswith("ClusterError: group 'shop' has 1 members, so it is that of an application that runs")
    assert "leave --group out, or name a group that nothing else uses" in said
    assert said.endswith("\n- m-1 (client shop-1, /10.0.0.1)\n")


def test_name_that_is_nearly_that_of_a_topic_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusterAdmin, "wait_until_reachable", lambda self, **_: None)
    monkeypatch.setattr(
        ClusterAdmin, "partition_counts", lambda self: {"orders-dead": 1, "__orders-ded": 1, "bills": 1}
    )
    near = run("list", "orders-ded", "--bootstrap-servers", "a:1")
    far = run("show", "x", "--bootstrap-servers", "a:1")

    assert near == (
        2,
        "MissingSourceTopicError: topic 'orders-ded' does not exist on a:1 (did you mean 'orders-dead'?); "
        "correct its name\n",
    )
    assert far == (2, "MissingSourceTopicError: topic 'x' does not exist on a:1; correct its name\n")


def test_target_that_is_nearly_that_of_a_topic_is_asked_about() -> None:
    letters = Letters(StreamsConfig({}), "dead", {}, {}, {"orders": 1, "dead": 1})

    with pytest.raises(MissingSinkTopicError, match=r"does not exist \(did you mean 'orders'\?\); create it"):
        Replay(letters, Selection(), "order", lambda *_: None)
