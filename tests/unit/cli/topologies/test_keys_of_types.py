"""A key as queries show it finds its row again, for every type that keys may have: over HTTP, and in the folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, TypedDict
from urllib.parse import quote
from uuid import UUID

import msgspec
import pydantic
import pytest
from click.testing import CliRunner, Result

from pykstreams import Consumed, Grouped, Materialized, Serdes, SessionWindows, Stores, StreamsBuilder, TimeWindows
from pykstreams.cli.app import cli
from pykstreams.cli.row_texts import cell_text
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes import AvroSerde, CombinedKey, JsonCombinedKeySerde, SessionWindowedSerde, TimeWindowedSerde
from pykstreams.serdes.by_type import TYPES
from pykstreams.serdes.key_texts import key_of_text
from pykstreams.types import Float32, Int16
from tests.unit.http.served_application import Client, client_of
from tests.unit.http.test_store_routes import KeysWithTopic
from tests.unit.runtime.queries.queried import TOPIC, Application


class Color(Enum):
    RED = "red"
    FIRST = 1


@dataclass(frozen=True)
class Item:
    name: str
    price: Decimal
    day: date | None = None


@dataclass(frozen=True)
class Box:
    items: tuple[Item, ...]
    color: Color


class Place(TypedDict):
    city: str
    since: datetime


class Customer(pydantic.BaseModel):
    name: str = pydantic.Field(alias="full name")
    born: date


class Product(msgspec.Struct):
    name: str
    made: datetime


OrderId = NewType("OrderId", str)
ZONE = timezone(timedelta(hours=1))
ITEM = Item("tea", Decimal("1.50"), date(2026, 1, 2))
AVRO: dict[str, object] = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "long"}]}


@dataclass(frozen=True)
class Number:
    n: int


def by_type(type_: Any) -> Any:
    return TYPES.serde(type_, is_key=True)


KEYS: list[tuple[Any, Any]] = [
    (by_type(str), "tea"),
    (by_type(str), '"5"'),
    (by_type(str), "null"),
    (by_type(OrderId), "a/b"),
    (by_type(bytes), b"\x00\xff/"),
    (by_type(bytes), bytes.fromhex("d35db7")),  # 0123 in base64
    (by_type(bytes), bytes.fromhex("9ee965")),  # null
    (by_type(int), -5),
    (by_type(Int16), 7),
    (by_type(float), 2.5),
    (by_type(float), 1e300),
    (by_type(Float32), 0.5),
    (by_type(bool), False),
    (by_type(UUID), UUID(int=7)),
    (by_type(datetime), datetime(2026, 1, 2, 2, 4, 5, tzinfo=ZONE)),
    (by_type(datetime), datetime(2026, 1, 2, 2, 4, 5, 6)),
    (by_type(date), date(2026, 1, 2)),
    (by_type(time), time(1, 2, 3)),
    (by_type(Decimal), Decimal("1.50")),
    (by_type(Decimal), Decimal("1E+30")),
    (by_type(Item), ITEM),
    (by_type(Box), Box((ITEM,), Color.RED)),
    (by_type(Place), {"city": "Bonn", "since": datetime(2026, 1, 2, tzinfo=UTC)}),
    (by_type(Customer), Customer(**{"full name": "Ann", "born": date(2000, 1, 2)})),  # type: ignore[arg-type]
    (by_type(Product), Product("tea", datetime(2026, 1, 2, tzinfo=UTC))),
    (by_type(list[Item]), [ITEM]),
    (by_type(list[int]), []),
    (by_type(tuple[int, str]), (1, "a")),
    (by_type(dict[str, float]), {"a": 1.5}),
    (by_type(Color), Color.RED),
    (by_type(Color), Color.FIRST),
    (by_type(Literal["a", 1]), "a"),
    (by_type(Item | Number), Number(5)),
    (by_type(int | datetime), datetime(2026, 1, 2)),
    (by_type(Annotated[Number, AvroSerde(AVRO, type_=Number)]), Number(5)),
    (by_type(CombinedKey[str, int]), CombinedKey("a", 1)),
    (by_type(CombinedKey[Item, datetime]), CombinedKey(ITEM, datetime(2026, 1, 2, tzinfo=UTC))),
    (by_type(CombinedKey[bytes, UUID]), CombinedKey(b"\xff", UUID(int=1))),
    (JsonCombinedKeySerde(by_type(Item), by_type(Color)), CombinedKey(ITEM, Color.RED)),
    (Serdes.list(Serdes.long()), [1, None, 2]),
    (TimeWindowedSerde(by_type(str), 10), Windowed("5", Window(20, 30))),
    (TimeWindowedSerde(by_type(Item), 10), Windowed(ITEM, Window(20, 30))),
    (TimeWindowedSerde(by_type(Decimal), 10), Windowed(Decimal("1.5"), Window(20, 30))),
    (SessionWindowedSerde(by_type(CombinedKey[str, Color])), Windowed(CombinedKey("a", Color.RED), Window(5, 9))),
]

SCRIPT = """
from tests.unit.cli.topologies.test_keys_of_types import KEYS, table
application_id = "shop"
def build():
    return table(KEYS[{number}][0])
"""


def table(serde: Any, store: Any = "kept") -> StreamsBuilder:
    builder = StreamsBuilder()
    consumed: Any = Consumed(key_serde=serde, value_serde=Serdes.string())
    builder.table(TOPIC, consumed, materialized=Materialized(store))
    return builder


Keep = Callable[..., tuple[Application, Client]]


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Keep]:
    """Feeds keys to a topology of one partition, or several, that runs; it is closed in the end."""
    made: list[Application] = []

    def build(builder: StreamsBuilder, serde: Any, *keys: Any, partition: int = 0, partitions: int = 1) -> Any:
        application = Application(builder, tmp_path / "tasks", partitions=partitions).start()
        made.append(application)
        for place, key in enumerate(keys):
            raw = serde.serializer.serialize(TOPIC, key)
            application.feed_raw((raw, f"value {place}".encode(), 5 + place), partition=partition)
        return application, client_of(application)

    yield build
    for one in made:
        one.close()


@pytest.mark.parametrize("number", range(len(KEYS)), ids=lambda number: f"{KEYS[number]}")
def test_what_is_shown_of_a_key_finds_its_row(
    keep: Keep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    serde, key = KEYS[number]
    application, client = keep(table(serde), serde, key)
    (row,) = client.get("/stores/kept/range").json["rows"]
    texts = {cell_text(row["key"])}  # as 'state show' prints it
    if serde is not by_type(str):
        texts.add(json.dumps(row["key"]))
    for text in texts:
        asked = quote(text, safe="")
        found = client.get(f"/stores/kept/keys/{asked}")
        assert (found.status, found.json["value"], found.json["key"]) == (200, "value 0", row["key"])
        ranged = client.get(f"/stores/kept/range?from={asked}&to={asked}").json["rows"]
        assert [one["key"] for one in ranged] == [row["key"]]
    application.commit()
    application.close()

    for text in texts:
        result = got(tmp_path, monkeypatch, SCRIPT.format(number=number), text)
        assert (result.exit_code, result.stdout.partition("  ")[0]) == (0, "value 0")


def got(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, text: str) -> Result:
    """What ``pykstreams state get`` says of a key in the folders that were left."""
    folder = tmp_path / "shop"
    folder.mkdir(exist_ok=True)
    if not (folder / "0_0").exists():
        (folder / "0_0").symlink_to(tmp_path / "tasks" / "0")
    (tmp_path / "shop.py").write_text(script)
    monkeypatch.chdir(tmp_path)
    words = ["state", "get", "shop.py", "--state-dir", str(tmp_path), "kept", "--", text]
    return CliRunner(env={}).invoke(cli, words, catch_exceptions=False)


@pytest.mark.parametrize("settings", [{}, {"topology.optimization": "all"}], ids=["own-changelog", "source-topic"])
def test_keys_are_read_and_written_as_the_changelog_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    application = Application(table(KeysWithTopic()), tmp_path / "tasks", settings=settings).start()
    application.feed_raw((b"in/tea", b"green", 5))
    application.commit()
    application.close()
    script = f"""
from tests.unit.cli.topologies.test_keys_of_types import KeysWithTopic, table
application_id = "shop"
config = {settings}
def build():
    return table(KeysWithTopic())
"""
    result = got(tmp_path, monkeypatch, script, "tea")

    assert (result.exit_code, result.stdout.partition("  ")[0]) == (0, "green")


@pytest.mark.parametrize(
    ("serde", "text"),
    [
        (by_type(Color), "green"),
        (by_type(Literal["a", 1]), "b"),
        (by_type(Item), '{"name":"tea"}'),
        (by_type(Item), "tea"),
        (by_type(Place), "[]"),
        (by_type(Customer), '{"name":"Ann"}'),
        (by_type(Product), '{"name":1}'),
        (by_type(list[int]), '["a"]'),
        (by_type(datetime), "soon"),
        (by_type(date), "5"),
        (by_type(Decimal), "NaN"),
        (by_type(int), "true"),
        (by_type(int), "1.5"),
        (by_type(int), str(2**70)),
        (by_type(float), "five"),
        (by_type(bool), "1"),
        (by_type(UUID), "1234"),
        (by_type(bytes), "a!"),
        (by_type(CombinedKey[str, int]), '{"prefix":"a"}'),
        (by_type(CombinedKey[str, int]), "a"),
        (by_type(CombinedKey[str, int]), '{"prefix":"a","suffix":null}'),
        (TimeWindowedSerde(by_type(str), 10), '{"key":"a"}'),
        (TimeWindowedSerde(by_type(str), 10), '{"key":"a","window":{"start":5,"end":5}}'),
        (TimeWindowedSerde(by_type(Color), 10), '{"key":"green","window":{"start":5,"end":15}}'),
    ],
    ids=str,
)
def test_what_cannot_be_a_key_is_refused_with_how_keys_are_written(keep: Keep, serde: Any, text: str) -> None:
    _, client = keep(table(serde), serde)
    asked = quote(text, safe="")
    answers = [client.get(f"/stores/kept/keys/{asked}"), client.get(f"/stores/kept/range?to={asked}")]

    assert [(one.status, one.problem) for one in answers] == [(400, "bad-key")] * 2
    assert "is no key of store 'kept', whose key serde is" in answers[0].json["detail"]
    assert "anything else in JSON, as queries show it" in answers[0].json["detail"]


@pytest.mark.parametrize(
    ("serde", "text"),
    [
        (by_type(int), "x" * 5000),
        (by_type(int), f'["{"x" * 5000}"]'),
        (by_type(date), "x" * 5000),
        (by_type(UUID), "x" * 5000),
        (by_type(bytes), "!" * 5000),
        (by_type(Color), "x" * 5000),
        (by_type(CombinedKey[str, int]), f'{{"prefix":"a","suffix":"{"x" * 5000}"}}'),
        (by_type(list[int]), "x" * 5000),
        (by_type(Place), f'{{"{"x" * 5000}": 5}}'),
        (by_type(Place), f'{{"city": "{"x" * 5000}"}}'),
        (TimeWindowedSerde(by_type(str), 10), "x" * 5000),
    ],
    ids=lambda given: str(given)[:40],
)
def test_long_texts_that_cannot_be_keys_are_cut(serde: Any, text: str) -> None:
    with pytest.raises(ValueError, match="is no key of store 'kept'") as raised:
        key_of_text(serde, "topic", text, store="kept")

    assert len(str(raised.value)) < 1000
    assert "..." in str(raised.value)


def test_long_prefixes_that_cannot_be_are_cut(keep: Keep) -> None:
    serde = by_type(bytes)
    _, client = keep(table(serde), serde)

    answer = client.get(f"/stores/kept/prefix?prefix={quote('!' * 5000, safe='')}")

    assert (answer.status, answer.problem) == (400, "bad-key")
    assert len(answer.json["detail"]) < 1000


def test_what_cannot_be_a_key_is_a_wrong_use_of_the_command(
    keep: Keep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = next(place for place, (_, key) in enumerate(KEYS) if key is Color.RED)
    application, _ = keep(table(KEYS[number][0]), KEYS[number][0], Color.RED)
    application.commit()
    application.close()
    result = got(tmp_path, monkeypatch, SCRIPT.format(number=number), "green")

    assert result.exit_code == 2
    assert "Invalid value for KEY: 'green' is no key of store 'kept'" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("serde", "keys", "prefix", "found"),
    [
        (by_type(str), ["tea", "te", "a"], "te", ["te", "tea"]),
        (by_type(date), [date(2026, 1, 2), date(2025, 1, 2)], "2026", ["2026-01-02"]),
        (by_type(bytes), [b"\xff\x01", b"\x01"], "_w", ["/wE="]),
        (
            by_type(CombinedKey[Item, int]),
            [CombinedKey(ITEM, 1), CombinedKey(Item("milk", Decimal(1)), 2)],
            '{"name":"milk","price":1}',
            [{"prefix": {"name": "milk", "price": "1", "day": None}, "suffix": 2}],
        ),
        (
            JsonCombinedKeySerde(),
            [CombinedKey("a", 1), CombinedKey("ab", 2)],
            "a",
            [{"prefix": "a", "suffix": 1}],
        ),
    ],
    ids=str,
)
def test_keys_are_found_by_their_prefix(keep: Keep, serde: Any, keys: list[Any], prefix: str, found: Any) -> None:
    _, client = keep(table(serde), serde, *keys)
    rows = client.get(f"/stores/kept/prefix?prefix={quote(prefix, safe='')}").json["rows"]

    assert [row["key"] for row in rows] == found


@pytest.mark.parametrize(
    ("serde", "kind", "prefix"),
    [
        (by_type(Item), "wrong-kind", "tea"),
        (by_type(bytes), "bad-key", "a!"),
        (by_type(CombinedKey[Item, int]), "bad-key", "tea"),
    ],
    ids=str,
)
def test_what_cannot_be_a_prefix_is_a_problem(keep: Keep, serde: Any, kind: str, prefix: str) -> None:
    _, client = keep(table(serde), serde)

    assert client.get(f"/stores/kept/prefix?prefix={quote(prefix, safe='')}").problem == kind


@pytest.mark.parametrize("windows", [TimeWindows(10), SessionWindows(10)], ids=["windows", "sessions"])
@pytest.mark.parametrize(
    ("serde", "key"), [(by_type(Item), ITEM), (by_type(datetime), datetime(2026, 1, 2, tzinfo=UTC))], ids=str
)
def test_windows_and_sessions_take_what_is_shown(keep: Keep, serde: Any, key: Any, windows: Any) -> None:
    builder = StreamsBuilder()
    consumed: Any = Consumed(key_serde=serde, value_serde=Serdes.string())
    grouped = builder.stream(TOPIC, consumed).group_by_key(Grouped(key_serde=serde, value_serde=Serdes.string()))
    grouped.windowed_by(windows).count(materialized=Materialized("kept"))
    _, client = keep(builder, serde, key)
    way = "windows" if isinstance(windows, TimeWindows) else "sessions"
    (row,) = client.get(f"/stores/kept/{way}").json["rows"]
    asked = quote(cell_text(row["key"]), safe="")

    for target in (f"/{asked}", f"?key={asked}", f"?key_from={asked}&key_to={asked}"):
        assert client.get(f"/stores/kept/{way}{target}").json["rows"] == [row]


def test_versions_take_what_is_shown(keep: Keep) -> None:
    serde = by_type(Decimal)
    builder = table(serde, Stores.persistent_versioned_key_value_store("kept", 1_000_000))
    _, client = keep(builder, serde, Decimal("1.50"))

    assert client.get("/stores/kept/keys/1.5?as_of=5").json["value"] == "value 0"
    assert client.get("/stores/kept/keys/1.50").json["value"] == "value 0"
    assert [row["value"] for row in client.get("/stores/kept/versions/1.5?from=0").json["rows"]] == ["value 0"]


def test_a_key_in_a_window_is_looked_for_where_all_windows_of_the_key_are(keep: Keep) -> None:
    """As sinks partition such keys: by the key without its window."""
    serde = TimeWindowedSerde(by_type(str), 10)

    keys = [Windowed("tea", Window(start, start + 10)) for start in (0, 10, 20, 30)]
    _, client = keep(table(serde), serde, *keys, partition=partition_for_key(b"tea", 3), partitions=3)
    rows = client.get("/stores/kept/range").json["rows"]

    found = [client.get(f"/stores/kept/keys/{quote(json.dumps(row['key']), safe='')}").status for row in rows]
    assert found == [200] * 4
