"""Stores of one instance over HTTP: every kind of store, keys and values of every serde, pages, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson
import pytest

from pykstreams import (
    Consumed,
    Grouped,
    JoinWindows,
    Materialized,
    Serdes,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    TimeWindows,
)
from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.types import END_OF_TIME, Decoder, Encoder
from pykstreams.http.asked_keys import AskedKey, asked_key
from pykstreams.http.exchange import HttpRequest
from pykstreams.http.local_answers import mark_of_question
from pykstreams.http.questions import KeyQuestion, ShownRow, mark_of
from pykstreams.serdes import SchemaRegistryAvroSerde
from pykstreams.serdes.base import CompiledSerde
from pykstreams.serdes.combined_key import CombinedKey, CombinedKeySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.registry.schema_registry import registry_client
from pykstreams.state.interfaces.store import KeyValueStore
from pykstreams.testing.clock import MockClock
from tests.unit.http.served_application import Client, Replies, client_of, lookups
from tests.unit.runtime.queries.queried import TOPIC, Application

TEXT, NUMBER = Serdes.string(), Serdes.long()
Make = Callable[..., Application]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Application] = []

    def build(builder: StreamsBuilder, **more: Any) -> Application:
        made.append(Application(builder, tmp_path / str(len(made)), **more).start())
        return made[-1]

    yield build
    for one in made:
        one.close()


def table(key_serde: Any = TEXT, value_serde: Any = TEXT, store: Any = "prices") -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.table(TOPIC, Consumed(key_serde=key_serde, value_serde=value_serde), materialized=Materialized(store))
    return builder


def spread(application: Application, keys: list[str], partitions: int, value: str = "v") -> None:
    """Feeds rows where their keys belong."""
    for time, key in enumerate(keys):
        application.feed((key, f"{value}-{key}", time), partition=partition_for_key(key.encode(), partitions))


@pytest.fixture
def prices(make: Make) -> Client:
    application = make(table(), partitions=3)
    spread(application, ["tea", "milk", "a/b", "a b", "ä", "50%", ".."], 3)
    return client_of(application)


@pytest.mark.parametrize("other", ["range?from=a&limit=2", "range?order=desc", "prefix?prefix=t", "range?to=z"])
def test_a_cursor_is_refused_with_another_question(make: Make, other: str) -> None:
    application = make(table(), partitions=1)
    application.feed(("tea", "green", 0), ("milk", "white", 1), ("rum", "brown", 2))
    client = client_of(application)
    cursor = client.get("/stores/prices/range?limit=1").json["next"]

    assert client.get(f"/stores/prices/range?limit=2&stale=allow&cursor={cursor}").status == 200
    assert client.get(f"/stores/prices/{other}&cursor={cursor}").problem == "bad-request"


@pytest.mark.parametrize("row", [[-2, "x"], [True, "x"], [1.5, "x"], ["0", "x"], [0, None], [0]])
def test_a_cursor_that_no_answer_has_given_is_refused(prices: Client, row: list[object]) -> None:
    of = mark_of_question("/stores/prices/range", {})
    cursor = base64.urlsafe_b64encode(orjson.dumps([*row, of])).decode().rstrip("=")

    assert prices.get(f"/stores/prices/range?cursor={cursor}").problem == "bad-request"


def test_a_cursor_of_the_release_before_is_refused(prices: Client) -> None:
    """It is but the row; the question was not told in it."""
    cursor = base64.urlsafe_b64encode(orjson.dumps([0, mark_of(b"tea")])).decode().rstrip("=")

    answer = prices.get(f"/stores/prices/range?cursor={cursor}")
    assert (answer.status, answer.problem) == (400, "bad-request")
    assert "begin again without it" in answer.json["detail"]


@pytest.mark.parametrize(
    ("question", "mark"),
    [
        ("range?from=b&to=d", "e"),
        ("range?from=b&to=d", "a"),
        ("range?to=d", "e"),
        ("range?from=b", "a"),
        ("range?from=b&to=d&order=desc", "a"),
        ("range?from=b&to=d&order=desc", "e"),
        ("prefix?prefix=b", "c"),
        ("prefix?prefix=b", "a"),
    ],
)
def test_a_cursor_at_a_key_that_its_question_does_not_ask_for_is_refused_before_the_store_can_warn_of_it(
    make: Make, caplog: pytest.LogCaptureFixture, question: str, mark: str
) -> None:
    application = make(table(), partitions=1)
    application.feed(*((key, key, 0) for key in "abcde"))

    answer = client_of(application).get(
        f"/stores/prices/{question}&cursor={made_up(question, 0, mark_of(mark.encode()))}"
    )
    assert (answer.status, answer.problem) == (400, "bad-request")
    assert "the cursor stands at a key" in answer.json["detail"]
    assert [one for one in caplog.records if one.levelname == "WARNING"] == []


def test_a_cursor_whose_key_is_null_is_refused(make: Make) -> None:
    application = make(table(JsonSerde(str)), partitions=1)

    answer = client_of(application).get(f"/stores/prices/range?cursor={made_up('range', 0, mark_of(b'null'))}")
    assert (answer.status, answer.problem) == (400, "bad-request")


@pytest.mark.parametrize("question", ["range", "prefix?prefix=t", "range?partition=0"])
@pytest.mark.parametrize("partition", [-1, 3, 1 << 40])
def test_a_cursor_at_a_partition_that_its_store_does_not_have_is_refused(
    prices: Client, question: str, partition: int
) -> None:
    cursor = made_up(question, partition, mark_of(b"tea"))

    answer = prices.get(f"/stores/prices/{question}{'&' if '?' in question else '?'}cursor={cursor}")
    assert (answer.status, answer.problem) == (400, "bad-request")
    assert f"no partition {partition}" in answer.json["detail"]


def made_up(question: str, partition: int, mark: str) -> str:
    """A cursor as no answer to a question gave it."""
    path, _, query = question.partition("?")
    of = mark_of_question(f"/stores/prices/{path}", dict(parse_qsl(query)))
    return base64.urlsafe_b64encode(orjson.dumps([partition, mark, of])).decode().rstrip("=")


def test_a_range_without_keys_is_refused_before_the_store_can_warn_of_it(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    builder = StreamsBuilder()
    grouped = builder.stream(TOPIC, Consumed(key_serde=TEXT, value_serde=TEXT)).group_by_key()
    grouped.windowed_by(TimeWindows(10, grace=0)).count(materialized="counts")
    client = client_of(make(builder, partitions=1))

    assert client.get("/stores/counts/windows?key_from=z&key_to=a").problem == "bad-request"
    assert [one for one in caplog.records if one.levelname == "WARNING"] == []


def test_row_of_a_store_that_keeps_no_times_shows_none(make: Make) -> None:
    builder = StreamsBuilder()
    stream = builder.stream(TOPIC, Consumed(key_serde=TEXT, value_serde=TEXT))
    windows = JoinWindows(10, grace=0)
    kept = StreamJoined(key_serde=TEXT, value_serde=TEXT, other_value_serde=TEXT, store_name="kept")
    stream.join(stream, lambda left, right: f"{left} {right}", windows=windows, stream_joined=kept).to("out")
    application = make(builder, partitions=1)
    application.feed(("tea", "green", 5), partition=0)

    [row] = client_of(application).get("/stores/kept-this-join-store/windows/tea?from=0&to=10").json["rows"]
    assert (row["value"], row["window"], "timestamp" in row) == ("green", {"start": 5, "end": 25}, False)


def test_a_key_is_answered_with_where_it_is_from(prices: Client) -> None:
    answer = prices.get("/stores/prices/keys/tea")

    number = partition_for_key(b"tea", 3)
    assert answer.status == 200
    assert answer.json == {
        "key": "tea",
        "value": "v-tea",
        "timestamp": 0,
        "from": {
            "partition": number,
            "host": "unavailable:-1",
            "role": "active",
            "position": answer.json["from"]["position"],
        },
    }
    assert list(answer.json["from"]["position"]) == [TOPIC]
    assert prices.short == 1


@pytest.mark.parametrize("key", ["a/b", "a b", "ä", "50%", ".."])
def test_a_key_with_characters_of_urls_is_found_in_the_path_and_in_the_query(prices: Client, key: str) -> None:
    in_path = prices.get(f"/stores/prices/keys/{quote(key, safe='')}").json
    in_query = prices.get(f"/stores/prices/keys?key={quote(key, safe='')}").json

    assert in_path["value"] == in_query["value"] == f"v-{key}"


LINES = ["tea", "tea\n", "tea\n\n", "\ntea", "te\na", "tea\r\n", "tea\u2028"]


@pytest.mark.parametrize("key", LINES, ids=repr)
def test_a_key_with_line_ends_means_itself(make: Make, key: str) -> None:
    application = make(table())
    application.feed(*((one, f"v-{one}", 0) for one in LINES))
    client = client_of(application)

    assert client.get(f"/stores/prices/keys/{quote(key, safe='')}").json["value"] == f"v-{key}"
    assert client.get(f"/stores/prices/keys?key={quote(key, safe='')}").json["value"] == f"v-{key}"


@pytest.mark.parametrize("kind", ["versions", "windows", "sessions"])
def test_rows_of_a_key_with_line_ends_are_its_own(make: Make, kind: str) -> None:
    builders = {
        "versions": table(store=Stores.persistent_versioned_key_value_store("prices", 1_000_000)),
        "windows": counted(TimeWindows(10), "prices"),
        "sessions": counted(SessionWindows(10), "prices"),
    }
    application = make(builders[kind])
    keys = ["tea", "tea\n", "te\na"]
    application.feed(*((key, "x", 1) for key in keys))
    client = client_of(application)

    for key in keys:
        (row,) = client.get(f"/stores/prices/{kind}/{quote(key, safe='')}").json["rows"]
        assert row["key"] == key


def test_a_key_that_is_not_there_is_a_problem_that_says_who_was_asked(prices: Client) -> None:
    answer = prices.get("/stores/prices/keys/coffee")

    assert (answer.status, answer.problem) == (404, "no-such-key")
    assert answer.json["from"]["role"] == "active"


def test_pages_give_every_row_once_and_in_the_order_of_partitions(prices: Client) -> None:
    found, cursor, pages = [], "", 0
    while True:
        page = prices.get(f"/stores/prices/range?limit=2{cursor}").json
        found += [row["key"] for row in page["rows"]]
        pages += 1
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"

    whole = [row["key"] for row in prices.get("/stores/prices/range").json["rows"]]
    assert found == whole
    assert sorted(found) == sorted(["tea", "milk", "a/b", "a b", "ä", "50%", ".."])
    assert pages >= 4


def test_pages_may_go_the_other_way_round(make: Make) -> None:
    application = make(table())
    application.feed(*((key, key, 0) for key in "abcde"))
    client = client_of(application)
    first = client.get("/stores/prices/range?order=desc&limit=2&from=b").json
    second = client.get(f"/stores/prices/range?order=desc&limit=2&from=b&cursor={first['next']}").json

    assert [row["key"] for row in first["rows"] + second["rows"]] == ["e", "d", "c", "b"]
    assert second["next"] is None


def test_a_prefix_finds_the_keys_that_begin_with_it_page_by_page(make: Make) -> None:
    application = make(table())
    application.feed(*((key, key, 0) for key in ("tea", "te", "ten", "tf", "a")))
    client = client_of(application)
    first = client.get("/stores/prices/prefix?prefix=te&limit=2").json
    second = client.get(f"/stores/prices/prefix?prefix=te&cursor={first['next']}").json

    assert [row["key"] for row in first["rows"] + second["rows"]] == ["te", "tea", "ten"]


@dataclass(frozen=True)
class Product:
    name: str
    grams: int


@pytest.mark.parametrize(
    ("serde", "key", "text", "shown"),
    [
        (NUMBER, 7, "7", 7),
        (Serdes.bytes(), b"\x00\xff/", "AP8v", "AP8v"),
        (Serdes.bytes(), b"\xff\xef", "_-8", base64.b64encode(b"\xff\xef").decode()),
        (JsonSerde(Product), Product("tea", 5), '{"name":"tea","grams":5}', {"name": "tea", "grams": 5}),
        (JsonSerde(str), "tea", "tea", "tea"),
    ],
)
def test_keys_are_written_as_their_serde_has_them(make: Make, serde: Any, key: Any, text: str, shown: Any) -> None:
    application = make(table(serde, JsonSerde(Product)))
    value = JsonSerde(Product).serializer.serialize(TOPIC, Product("green", 1))
    application.feed_raw((serde.serializer.serialize(TOPIC, key), value, 5))

    answer = client_of(application).get(f"/stores/prices/keys/{quote(text, safe='')}").json
    assert (answer["key"], answer["value"], answer["timestamp"]) == (shown, {"name": "green", "grams": 1}, 5)


def test_versions_are_read_as_of_a_time_and_over_a_span(make: Make) -> None:
    application = make(table(store=Stores.persistent_versioned_key_value_store("prices", 1_000_000)))
    application.feed(("tea", "old", 10), ("tea", "new", 20))
    client = client_of(application)

    assert client.get("/stores/prices/keys/tea").json["value"] == "new"
    old = client.get("/stores/prices/keys/tea?as_of=15").json
    assert (old["value"], old["timestamp"], old["valid_to"]) == ("old", 10, 20)
    assert client.get("/stores/prices/keys/tea?as_of=1970-01-01T00:00:00.015Z").json["value"] == "old"
    rows = client.get("/stores/prices/versions/tea?from=0&to=100").json["rows"]
    assert [(row["value"], row["timestamp"], row["valid_to"]) for row in rows] == [("old", 10, 20), ("new", 20, None)]
    assert client.get("/stores/prices/range").problem == "wrong-kind"
    assert client.get("/stores/prices/versions/tea?to=1969-12-31T23:59Z").problem == "bad-request"


@pytest.mark.parametrize("target", ["windows?cursor={}", "windows/a?limit=1000", "windows?limit=1000"])
def test_a_read_that_nobody_waits_for_any_more_ends(make: Make, target: str) -> None:
    """Its thread would be missing to others for as long as it takes, which for a cursor may be all of a store."""
    read, clocks = [], list[MockClock]()

    def decode(data: bytes) -> str:
        read.append(data)
        for clock in clocks:
            clock.advance(1_000)
        return data.decode()

    serde = Serdes.from_functions(str.encode, decode)
    builder = StreamsBuilder()
    grouped = builder.stream(TOPIC, Consumed(key_serde=TEXT, value_serde=TEXT)).group_by_key()
    grouped.windowed_by(TimeWindows(10)).aggregate(
        lambda: "", lambda key, value, before: value, materialized=Materialized("last", value_serde=serde)
    )
    application = make(builder)
    application.feed(*(("a", "x", 10 * number) for number in range(500)))
    client = client_of(application)
    assert client.clock is not None
    question = "/stores/last/windows"
    gone = base64.urlsafe_b64encode(orjson.dumps([0, mark_of(b"z", 0, 10), mark_of_question(question, {})])).decode()
    read.clear()
    clocks.append(client.clock)

    answer = client.get(f"/stores/last/{target.format(gone.rstrip('='))}")

    assert (answer.status, answer.problem) == (504, "timeout")
    assert len(read) < 200


def test_no_more_versions_are_written_as_json_than_are_asked_for(make: Make) -> None:
    """The worker would wait for all those of a key that has thousands."""
    odd = Serdes.from_functions(
        lambda value: value.encode() if isinstance(value, str) else b"odd",
        lambda data: object() if data == b"odd" else data.decode(),
    )
    store = Stores.persistent_versioned_key_value_store("prices", 1_000_000)
    application = make(table(value_serde=odd, store=store))
    application.feed(*(("tea", value, time) for time, value in enumerate(["a", "b", "odd"])))
    client = client_of(application)

    assert [row["value"] for row in client.get("/stores/prices/versions/tea?limit=1").json["rows"]] == ["a"]
    assert client.get("/stores/prices/versions/tea?limit=2").problem == "no-json"


def counted(windows: Any, store: str) -> StreamsBuilder:
    builder = StreamsBuilder()
    grouped = builder.stream(TOPIC, Consumed(key_serde=TEXT, value_serde=TEXT)).group_by_key(
        Grouped(key_serde=TEXT, value_serde=TEXT)
    )
    grouped.windowed_by(windows).count(materialized=Materialized(store))
    return builder


@pytest.fixture
def windows(make: Make) -> Client:
    application = make(counted(TimeWindows(10), "counts"))
    application.feed(*((key, "x", time) for time in (1, 5, 11, 25) for key in ("a", "b")))
    return client_of(application)


def test_windows_of_a_key_are_read_by_time(windows: Client) -> None:
    rows = windows.get("/stores/counts/windows/a?from=0&to=10").json["rows"]

    assert [(row["window"], row["value"]) for row in rows] == [
        ({"start": 0, "end": 10}, 2),
        ({"start": 10, "end": 20}, 1),
    ]
    assert windows.get("/stores/counts/windows?key=a&from=0&to=10").json["rows"] == rows


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_windows_of_all_keys_come_in_pages(windows: Client, order: str) -> None:
    whole = windows.get(f"/stores/counts/windows?order={order}").json["rows"]
    found: list[Any] = []
    cursor = ""
    while True:
        page = windows.get(f"/stores/counts/windows?order={order}&limit=1{cursor}").json
        found += page["rows"]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"

    assert len(whole) == 6
    assert found == whole


def test_a_window_at_the_end_of_time_is_the_same_by_key_and_among_all(make: Make) -> None:
    builder = StreamsBuilder()
    stream = builder.stream(TOPIC, Consumed(key_serde=TEXT, value_serde=TEXT))
    kept = StreamJoined(key_serde=TEXT, value_serde=TEXT, other_value_serde=TEXT, store_name="kept")
    stream.join(stream, lambda left, right: left, windows=JoinWindows(10, grace=0), stream_joined=kept).to("out")
    application = make(builder)
    application.feed(("tea", "x", END_OF_TIME - 7))
    client = client_of(application)

    of_key = client.get("/stores/kept-this-join-store/windows/tea").json["rows"]
    of_all = client.get("/stores/kept-this-join-store/windows").json["rows"]
    assert of_key == of_all
    assert [row["window"] for row in of_key] == [{"start": END_OF_TIME - 7, "end": END_OF_TIME}]


def test_windows_of_a_range_of_keys(windows: Client) -> None:
    rows = windows.get("/stores/counts/windows?key_from=b&from=20").json["rows"]

    assert [(row["key"], row["window"]["start"]) for row in rows] == [("b", 20)]


def test_sessions_are_read_by_key_and_by_range(make: Make) -> None:
    application = make(counted(SessionWindows(10), "visits"))
    application.feed(("a", "x", 0), ("a", "x", 5), ("b", "x", 7), ("a", "x", 100))
    client = client_of(application)

    rows = client.get("/stores/visits/sessions/a").json["rows"]
    assert [(row["window"]["start"], row["window"]["end"], row["value"]) for row in rows] == [(0, 5, 2), (100, 100, 1)]
    assert [row["key"] for row in client.get("/stores/visits/sessions?to=50").json["rows"]] == ["a", "b"]
    assert client.get("/stores/visits/keys/a").problem == "wrong-kind"


def test_the_stores_and_their_kinds_are_listed(windows: Client) -> None:
    (told,) = windows.get("/stores").json["stores"]

    assert (told["name"], told["kind"], told["global"], told["window_size_ms"]) == ("counts", "window", False, 10)
    assert windows.get("/stores/counts").json["here"] == [{"partition": 0, "role": "active"}]


@pytest.mark.parametrize(
    ("target", "status", "kind"),
    [
        ("/stores/nothing/keys/a", 404, "unknown-store"),
        ("/stores/..%2fprices/keys/a", 404, "not-found"),
        ("/stores/prices/windows/a", 400, "wrong-kind"),
        ("/stores/prices/keys", 400, "bad-request"),
        ("/stores/prices/keys/a?as_of=5", 400, "wrong-kind"),
        ("/stores/prices/keys/a?whatever=5", 400, "bad-request"),
        ("/stores/prices/keys/a?stale=now", 400, "bad-request"),
        ("/stores/prices/keys/a?stale=" + "9" * 5000, 400, "bad-request"),
        ("/stores/prices/keys/a?partition=9", 400, "bad-request"),
        ("/stores/prices/keys/a?scope=world", 400, "bad-request"),
        ("/stores/prices/keys/a?position=5", 400, "bad-request"),
        ("/stores/prices/range?limit=1000000", 400, "too-many-rows"),
        ("/stores/prices/range?limit=" + "9" * 5000, 400, "too-many-rows"),
        ("/stores/prices/range?limit=" + "0" * 19 + "1" + "9" * 5, 400, "too-many-rows"),
        ("/stores/prices/range?limit=" + "0" * 19 + "1" + "9" * 5000, 400, "too-many-rows"),
        ("/stores/prices/range?limit=" + "0" * 5000, 400, "bad-request"),
        ("/stores/prices/range?limit=0", 400, "bad-request"),
        ("/stores/prices/range?limit=-1", 400, "bad-request"),
        ("/stores/prices/range?limit=1&limit=2", 400, "bad-request"),
        ("/stores/prices/range?cursor=x", 400, "bad-request"),
        ("/stores/prices/range?from=z&to=a", 400, "bad-request"),
        ("/stores/prices/range?order=up", 400, "bad-request"),
        ("/stores/../../etc/passwd", 404, "not-found"),
        ("/stores/%2e%2e/%2e%2e/etc/passwd", 404, "not-found"),
        ("//stores", 404, "not-found"),
        ("/stores%0A", 404, "not-found"),
        ("/stores/", 404, "not-found"),
        ("/metrics", 404, "not-found"),
        ("/nothing", 404, "not-found"),
    ],
)
def test_what_cannot_be_answered_is_a_problem(prices: Client, target: str, status: int, kind: str) -> None:
    answer = prices.get(target)

    assert (answer.status, answer.problem) == (status, kind)


def test_a_limit_of_one_row_is_refused_but_among_instances(prices: Client) -> None:
    for target in ("/stores/prices/keys/tea?", "/stores/prices/keys?key=tea&"):
        assert prices.get(f"{target}limit=5").problem == "bad-request"
        assert prices.get(f"{target}limit=5&scope=local").problem == "bad-request"
        assert prices.get(f"{target}limit=5&scope=parts").status == 200
        assert prices.get(f"{target}scope=parts&limit=5").status == 200


def test_a_long_key_is_told_once(prices: Client) -> None:
    key = "k" * 1000
    for target in (f"/stores/prices/keys/{key}", f"/stores/prices/keys?key={key}"):
        answer = prices.get(target)
        assert (answer.status, answer.problem) == (404, "no-such-key")
        assert f"store 'prices' has nothing for '{'k' * 200}...'" == answer.json["detail"]


@pytest.mark.parametrize("target", ["/stores", "/instances", "/health/live", "/openapi.json", "/stores/prices"])
def test_a_route_without_parameters_says_that_it_has_none(prices: Client, target: str) -> None:
    detail = prices.get(f"{target}?x=1").json["detail"]

    assert f"{target} has no parameter 'x'; it has: none" == detail


def test_the_order_that_is_the_default_may_be_told_or_not_from_page_to_page(prices: Client) -> None:
    first = prices.get("/stores/prices/range?limit=3").json
    told = prices.get(f"/stores/prices/range?order=asc&limit=3&cursor={first['next']}")
    untold = prices.get(f"/stores/prices/range?limit=3&cursor={first['next']}")

    assert (told.status, told.json["rows"]) == (200, untold.json["rows"])
    assert prices.get(f"/stores/prices/range?order=desc&cursor={first['next']}").problem == "bad-request"


def test_a_limit_may_have_zeros_in_front(prices: Client) -> None:
    assert len(prices.get(f"/stores/prices/range?limit={'0' * 5000}2").json["rows"]) == 2


def test_a_key_that_its_serde_does_not_take_is_a_problem(make: Make) -> None:
    client = client_of(make(table(NUMBER)))

    assert client.get("/stores/prices/keys/tea").problem == "bad-key"
    assert client.get(f"/stores/prices/keys/{2**70}").problem == "bad-key"


@pytest.mark.parametrize("way", ["keys/tea", "keys?key=tea", "range", "range?from=tea&to=tea"])
def test_a_value_that_its_serde_cannot_read_is_no_error_of_the_key(tmp_path: Path, way: str) -> None:
    """As after a release whose serde is another one."""
    before = Application(table(), tmp_path).start()
    before.feed(("tea", "green", 0))
    before.commit()
    before.close()
    application = Application(table(value_serde=NUMBER), tmp_path).start()

    answer = client_of(application).get(f"/stores/prices/{way}")
    application.close()

    assert (answer.status, answer.problem) == (500, "unreadable")
    assert "tea" not in answer.json["title"]
    assert "LongSerde()" in answer.json["detail"]


def test_a_cursor_whose_key_its_serde_cannot_read_is_refused(make: Make) -> None:
    of = mark_of_question("/stores/prices/range", {})
    cursor = base64.urlsafe_b64encode(orjson.dumps([0, mark_of(b"tea"), of])).decode().rstrip("=")

    assert client_of(make(table(NUMBER))).get(f"/stores/prices/range?cursor={cursor}").problem == "bad-request"


def test_an_error_of_a_serde_that_is_no_text_costs_the_questions_with_it_nothing(make: Make) -> None:
    def read(data: bytes) -> str:
        raise ValueError(data.decode("utf-8", "surrogateescape"))

    def write(text: str) -> bytes:
        if text == "tea":
            raise ValueError("\udcff is none")
        return text.encode()

    application = make(table(Serdes.from_functions(write, read)))
    client = client_of(application)
    paths = ["/stores/prices/keys/tea", "/stores/prices/keys/milk"]
    replies = Replies()

    client.app.answers.look_up("prices", lookups(*paths), replies)

    assert replies.left == [0]
    assert replies.answers[1].status == 404
    assert "\\udcff is none" in client.get("/stores/prices/keys/tea").json["detail"]


def test_a_value_is_that_of_the_position_beside_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker goes on whenever a reader has left, and is kept waiting once for each value."""
    application = make(table())
    application.feed(("tea", "old", 0))
    gate = application.by_partition[0].gate
    plainly, turns = gate.read, 0

    def read(action: Callable[[], Any]) -> Any:
        nonlocal turns
        turns += 1
        found = plainly(action)
        if turns == 1:
            application.feed(("tea", "new", 1))
        return found

    monkeypatch.setattr(gate, "read", lambda action: action() if gate._inside is not None else read(action))
    answer = asyncio.run(client_of(application).ask("/stores/prices/keys/tea", {})).json

    assert (answer["value"], answer["from"]["position"]) == ("old", {TOPIC: {"0": 0}})
    assert turns == 1


@pytest.mark.parametrize(("key", "status"), [("tea", 200), ("coffee", 404)])
def test_a_key_is_answered_by_the_worker_when_it_leaves_its_batch_whatever_the_answer_is(
    make: Make, key: str, status: int
) -> None:
    application = make(table())
    application.feed(("tea", "green", 0))
    client, replies = client_of(application), Replies()

    with application.by_partition[0].gate:
        asked = lookups(f"/stores/prices/keys/{key}")
        asking = threading.Thread(target=client.app.answers.look_up, args=["prices", asked, replies])
        asking.start()
        asking.join()
        before = dict(replies.answers)
    application.feed(("tea", "black", 1))

    assert before == {}
    assert replies.answers[0].status == status
    assert client.get("/stores/prices/keys/tea").json["value"] == "black"


def test_questions_that_come_together_get_the_answers_that_each_gets_alone(prices: Client) -> None:
    paths = ["/stores/prices/keys/tea", "/stores/prices/keys/x", "/stores/prices/keys/milk"]
    replies = Replies()

    prices.app.answers.look_up("prices", lookups(*paths), replies)

    assert replies.left == []
    for number, path in enumerate(paths):
        alone = prices.get(path)
        assert (replies.answers[number].status, replies.answers[number].body) == (alone.status, alone.body)


def test_keys_of_a_store_that_there_is_not_are_left_to_the_way_that_tells_so(prices: Client) -> None:
    replies = Replies()

    prices.app.answers.look_up("none", lookups("/stores/none/keys/tea", "/stores/none/keys/x"), replies)

    assert (replies.left, replies.answers) == ([0, 1], {})
    assert prices.get("/stores/none/keys/tea").problem == "unknown-store"


@pytest.mark.parametrize(
    ("target", "query", "found"),
    [
        ("/stores/prices/keys/tea", "", AskedKey("prices", "tea")),
        ("/stores/prices/keys/a/b\n", "stale=allow", AskedKey("prices", "a/b\n")),
        ("/stores/prices/keys/tea", "stale=1500", AskedKey("prices", "tea")),
        ("/stores/prices/keys/tea", "as_of=7", AskedKey("prices", "tea", 7)),
        ("/stores/prices/keys/tea", "as_of=99999999999999999999", AskedKey("prices", "tea", END_OF_TIME)),
        pytest.param("/stores/prices/keys/tea", "as_of=" + "9" * 5_000, None, id="as_of of 5,000 digits"),
        ("/stores/prices/keys/tea", "stale=soon", None),
        ("/stores/prices/keys/tea", "as_of=2026-01-01T00:00Z", None),
        ("/stores/prices/keys/tea", "stale=1&stale=1", None),
        ("/stores/prices/keys/tea", "scope=local", None),
        ("/stores/prices/keys/", "", None),
        ("/stores//keys/tea", "", None),
        ("/stores/prices/range", "", None),
        ("/other/prices/keys/tea", "", None),
    ],
)
def test_only_requests_for_one_key_that_say_no_more_are_looked_up(
    target: str, query: str, found: AskedKey | None
) -> None:
    assert asked_key(HttpRequest(target, target, query, "")) == found
    assert found is None or found.path == target


@pytest.mark.parametrize("failing", [TypeError("no such type"), InvalidStateStoreError("closed")])
def test_a_row_that_cannot_be_read_costs_the_questions_with_it_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch, failing: Exception
) -> None:
    application = make(table())
    application.feed(("tea", "green", 0), ("milk", "white", 1))
    shown = KeyQuestion.shown

    def fail(question: KeyQuestion, store: KeyValueStore[object, object]) -> ShownRow | None:
        if question.key == "tea":
            raise failing
        return shown(question, store)

    monkeypatch.setattr(KeyQuestion, "shown", fail)
    paths = ["/stores/prices/keys/tea", "/stores/prices/keys/milk"]
    replies = Replies()

    client_of(application).app.answers.look_up("prices", lookups(*paths), replies)

    assert replies.left == [0], "it may be open elsewhere, or again; the other way tells"
    assert replies.answers[1].status == 200


def test_questions_whose_partitions_cannot_be_found_are_answered_with_a_problem(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = make(table())
    client = client_of(application)

    def fail(*arguments: object) -> None:
        raise TypeError("no partitioner")

    monkeypatch.setattr(application.queries, "placer", fail)
    replies = Replies()

    client.app.answers.look_up("prices", lookups("/stores/prices/keys/a", "/stores/prices/keys/b"), replies)

    assert replies.left == [0, 1]
    assert client.get("/stores/prices/keys/a").status == 500


def test_a_bound_that_is_not_reached_is_a_problem_that_passes(prices: Client) -> None:
    number = partition_for_key(b"tea", 3)
    bound = quote(f'{{"in":{{"{number}":99}}}}')
    answer = prices.get(f"/stores/prices/keys/tea?position={bound}")

    assert (answer.problem, answer.headers["retry-after"]) == ("not-up-to-bound", "1")
    reached = quote(f'{{"in":{{"{number}":0}}}}')
    assert prices.get(f"/stores/prices/keys/tea?position={reached}").status == 200


def test_an_answer_ends_before_it_has_too_many_bytes_and_goes_on(make: Make) -> None:
    application = make(table())
    application.feed(*((key, "x" * 100, 0) for key in "abcd"))
    page = client_of(application, max_answer_bytes=300).get("/stores/prices/range").json

    assert [row["key"] for row in page["rows"]] == ["a", "b"]
    assert page["next"] is not None


@pytest.mark.parametrize("settings", [{}, {"topology.optimization": "all"}], ids=["own-changelog", "source-topic"])
@pytest.mark.parametrize("registers", [True, False], ids=["registers", "looks-up"])
def test_keys_are_written_as_the_changelog_has_them(make: Make, settings: dict[str, str], registers: bool) -> None:
    """A schema registry has a subject for each topic, and none for the name of a store."""
    registry = f"mock://keys-over-http-{registers}-{len(settings)}"
    client = registry_client(registry)
    for topic in () if registers else (TOPIC, "shop-prices-changelog"):
        SchemaRegistryAvroSerde(registry, '"string"', is_key=True).serialize(topic, "tea")
    serde = SchemaRegistryAvroSerde(
        registry, '"string"', is_key=True, serializer_config={"auto.register.schemas": registers}
    )
    application = make(table(serde), settings=settings)
    application.feed_raw(*((serde.serialize(TOPIC, key) or b"", b"green", 5) for key in ("tea", "ten")))
    subjects = client.get_subjects()
    http = client_of(application)

    assert http.get("/stores/prices/keys/tea").json["value"] == "green"
    first = http.get("/stores/prices/range?limit=1").json
    second = http.get(f"/stores/prices/range?limit=1&cursor={first['next']}").json
    assert [row["key"] for row in first["rows"] + second["rows"]] == ["tea", "ten"]
    assert client.get_subjects() == subjects


def test_prefixes_are_written_as_the_changelog_has_them(make: Make) -> None:
    serde = CombinedKeySerde(KeysWithTopic(), KeysWithTopic())
    application = make(table(serde))
    raw = serde.serialize("in", CombinedKey("tea", "green"))
    application.feed_raw((raw or b"", b"green", 5))

    rows = client_of(application).get("/stores/prices/prefix?prefix=tea").json["rows"]
    assert [row["key"] for row in rows] == [{"prefix": "tea", "suffix": "green"}]


class KeysWithTopic(CompiledSerde[str]):
    """Writes text behind the topic that it is told."""

    def encoder(self, topic: str) -> Encoder:
        return lambda data, headers: None if data is None else f"{topic}/{data}".encode()

    def decoder(self, topic: str) -> Decoder:
        return lambda data, headers: None if data is None else data.decode().removeprefix(f"{topic}/")


@pytest.mark.parametrize("rows", [8, 10, 12])
def test_an_answer_of_several_partitions_has_no_more_bytes_than_one_of_a_partition(make: Make, rows: int) -> None:
    application = make(table(), partitions=4)
    keys = [f"{partition}-{place:02}" for partition in range(4) for place in range(rows)]
    for key in keys:
        application.feed((key, "x" * 1000, 0), partition=int(key[0]))
    client = client_of(application, max_answer_bytes=11_000)
    assert len(client.get("/stores/prices/range?scope=parts&limit=1000&partition=0,1,2,3").body) < 13_000
    found: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"/stores/prices/range?limit=1000{cursor}")
        assert len(page.body) < 13_000
        found += [row["key"] for row in page.json["rows"]]
        if page.json["next"] is None:
            break
        cursor = f"&cursor={page.json['next']}"

    assert found == keys
