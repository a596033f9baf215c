"""Whatever a store is asked is answered by rows, or by a problem that blames the request; nothing becomes an error."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import Consumed, Serdes, Stores, StreamsBuilder
from pykstreams.core.processor import Processor, ProcessorContext
from pykstreams.core.record import Record
from pykstreams.http.local_answers import mark_of_question
from pykstreams.http.parameters import COMMON
from pykstreams.http.store_routes import STORE_ROUTES
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.windowed import TimeWindowedSerde
from pykstreams.state.store_kinds import StoreKind
from tests.unit.http.served_application import Client, client_of
from tests.unit.runtime.queries.queried import TOPIC, Application

TEXT = Serdes.string()


@dataclass(frozen=True)
class Product:
    name: str
    grams: int


KEY_VALUE_STORES: Mapping[str, AnySerde] = {
    "texts": TEXT,
    "raw": Serdes.bytes(),
    "shorts": Serdes.short(),
    "numbers": Serdes.integer(),
    "longs": Serdes.long(),
    "floats": Serdes.float(),
    "doubles": Serdes.double(),
    "flags": Serdes.boolean(),
    "ids": Serdes.uuid(),
    "documents": JsonSerde(dict),
    "products": JsonSerde(Product),
    "lists": Serdes.list(Serdes.integer()),
    "windowed": TimeWindowedSerde(TEXT, 10),
}


class Filling(Processor[str, str, str, str]):
    """Puts each record into stores of every kind with keys of text."""

    def init(self, context: ProcessorContext[str, str]) -> None:
        super().init(context)
        self.texts = context.get_state_store("texts")
        self.versions = context.get_state_store("versions")
        self.windows = context.get_state_store("windows")

    def process(self, record: Record[str, str]) -> None:
        self.texts.put(record.key, record.value)
        self.versions.put(record.key, record.value, record.timestamp)
        self.windows.put(record.key, record.value, record.timestamp)


def every_kind() -> StreamsBuilder:
    builder = StreamsBuilder()
    for name, serde in KEY_VALUE_STORES.items():
        kept = Stores.persistent_key_value_store if name == "texts" else Stores.in_memory_key_value_store
        builder.add_state_store(Stores.key_value_store_builder(kept(name), serde, TEXT))
    versions = Stores.persistent_versioned_key_value_store("versions", 1_000_000)
    builder.add_state_store(Stores.versioned_key_value_store_builder(versions, TEXT, TEXT))
    windows = Stores.persistent_window_store("windows", 1_000_000, 10)
    builder.add_state_store(Stores.window_store_builder(windows, TEXT, TEXT))
    sessions = Stores.persistent_session_store("sessions", 1_000_000)
    builder.add_state_store(Stores.session_store_builder(sessions, TEXT, TEXT))
    names = [*KEY_VALUE_STORES, "versions", "windows", "sessions"]
    builder.stream(TOPIC, Consumed(key_serde=TEXT, value_serde=TEXT)).process(Filling, *names)
    return builder


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    application = Application(every_kind(), tmp_path_factory.mktemp("stores"), partitions=2).start()
    for partition in (0, 1):
        rows = [(key, f"value of {key}", time) for time, key in enumerate(["", "tea", "tea pot", "\0", "ü", "/"])]
        application.feed(*rows, partition=partition)
    yield client_of(application)
    application.close()


def digits(number: int) -> str:
    return f"{number:d}"


def cursor(partition: object, mark: object, of: str) -> str:
    """A cursor as the answers to a question have them, see ``mark_of_question``."""
    return base64.urlsafe_b64encode(json.dumps([partition, mark, of]).encode()).decode().rstrip("=")


INTEGERS = st.one_of(st.integers(), st.sampled_from([2**15, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1]))
DIGITS = st.one_of(INTEGERS.map(digits), st.just("9" * 5000))
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
JSON = st.one_of(ANYTHING.map(json.dumps), st.just("[" * 2_000))
BASE64 = st.binary(max_size=20).map(lambda raw: base64.b64encode(raw).decode())
KEYS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["tea", "tea pot", "", "/", "..", "../../etc/passwd", "true", "null", '{"name":"tea","grams":5}']),
    DIGITS,
    st.floats().map(repr),
    st.uuids().map(str),
    BASE64,
    JSON,
    st.builds(
        lambda key, start, end: json.dumps({"key": key, "window": {"start": start, "end": end}}), *3 * [ANYTHING]
    ),
)
TIMES = st.one_of(
    DIGITS,
    st.datetimes().map(lambda time: f"{time.isoformat()}+00:00"),
    st.sampled_from(["0001-01-01T00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01", "24:00", "٣"]),
    st.text(max_size=8),
)
MARKS = st.one_of(st.text(max_size=8), BASE64, st.sampled_from(["dGVh", "dGVh.0.10", "dGVh.0", "AA", "", "."]))
FITTING: Mapping[str, st.SearchStrategy[str]] = {
    "stale": st.sampled_from(["refuse", "allow", "0", "1000", "9" * 5000]),
    "scope": st.sampled_from(["group", "local", "parts"]),
    "order": st.sampled_from(["asc", "desc"]),
    "partition": st.sampled_from(["0", "1", "0,1", "1,0", "all", "0,0", " 1"]),
    "position": st.builds(lambda offset: json.dumps({TOPIC: {"0": offset, "1": 0}}), INTEGERS | ANYTHING),
    "limit": st.sampled_from(["1", "2", "1000"]),
    "as_of": TIMES,
    "from": TIMES | KEYS,
    "to": TIMES | KEYS,
}
WILD: Mapping[str, st.SearchStrategy[str]] = {
    "stale": DIGITS | st.text(max_size=8),
    "partition": DIGITS | st.text(max_size=8),
    "position": JSON | st.sampled_from(['{"in":{"0":1e400}}', '{"in":{"0":NaN}}', '{"in":{"-1":5}}']),
    "limit": DIGITS | st.text(max_size=8),
}
CURSORS = st.tuples(st.sampled_from([0, 1]), MARKS)
WILD_CURSORS = st.tuples(ANYTHING, ANYTHING)
KINDS = {
    StoreKind.KEY_VALUE: [*KEY_VALUE_STORES],
    StoreKind.VERSIONED: ["versions"],
    StoreKind.WINDOW: ["windows"],
    StoreKind.SESSION: ["sessions"],
}
STORES = [name for names in KINDS.values() for name in names]


@st.composite
def targets(draw: st.DrawFn) -> str:
    """A path and a query as they stand in a request: half of them of the right form, at least."""
    route = draw(st.sampled_from(STORE_ROUTES))
    fits = draw(st.booleans())
    fitting = [name for kind in route.kinds for name in KINDS[kind]]
    store = draw(st.sampled_from(fitting if fits else STORES) | (st.nothing() if fits else st.text(max_size=8)))
    path = route.path.format(store=quote(store, safe=""), key=quote(draw(KEYS), safe=draw(st.sampled_from(["", "/"]))))
    names = [one.name for one in (*route.parameters, *COMMON) if one.place == "query"]
    if fits:
        chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True))
    else:
        chosen = draw(st.lists(st.sampled_from([*names, "cursor", "nonsense"]), max_size=4))
    values = FITTING if fits else {**FITTING, **WILD}
    query = [(name, draw(values.get(name, KEYS))) for name in chosen if name != "cursor"]
    if "cursor" in chosen:
        of = mark_of_question(unquote(path), dict(query))
        partition, mark = draw(CURSORS if fits else CURSORS | WILD_CURSORS)
        made = st.just(cursor(partition, mark, of))
        query.append(("cursor", draw(made if fits else made | BASE64 | st.text(max_size=8))))
    return f"{path}?{urlencode(query)}"


@pytest.mark.slow
@settings(max_examples=200)
@given(targets())
def test_any_request_is_understood_or_refused(client: Client, target: str) -> None:
    answer = client.get(target)

    if answer.status == 200:
        orjson.loads(answer.body)
    elif answer.status == 503:
        assert answer.problem == "not-up-to-bound"
    else:
        assert (400 <= answer.status < 500, answer.problem) == (True, answer.problem)
