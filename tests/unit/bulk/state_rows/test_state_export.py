"""A store as Arrow rows, and as files of them: the same columns, wherever its state lies."""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pykstreams.bulk.application import Application
from pykstreams.bulk.brokers.changelog import ChangelogOutput
from pykstreams.bulk.state_rows.export import _WRITERS
from pykstreams.bulk.state_rows.parts import part_batches, state_parts
from pykstreams.bulk.state_rows.views import StoreSelection, json_text, plain, time_of
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import BootstrapError, ConfigError, LockError, UnknownStateStoreError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.spark import StoreBootstrap, bootstrap, export_state
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.directory.file_lock import FileLock
from pykstreams.state.encoding.composed_keys import PREFIX_BYTES, SessionKeySchema, WindowKeySchema
from tests.unit.bulk.state_of_tests import script_in, state_in
from tests.unit.bulk.synced import Synced

APPLE = {"task": "0_1", "partition": 1, "key": "apple"}
PEAR = {"task": "0_1", "partition": 1, "key": "pear"}


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


@pytest.fixture
def script(tmp_path: Path) -> str:
    return script_in(tmp_path)


@pytest.fixture
def state(tmp_path: Path, script: str) -> str:
    return str(state_in(tmp_path, script))


def rows(view: StoreSelection, schema: pa.Schema | None = None, **where: Any) -> list[dict[str, Any]]:
    return [
        row
        for part in state_parts(view, **where)
        for batch in part_batches(view, part, schema)
        for row in batch.to_pylist()
    ]


def look(script: str, store: str, **said: Any) -> StoreSelection:
    return StoreSelection(Application(script), store, **said)


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("totals", [{**APPLE, "value": 2, "timestamp": at(12_000)}, {**PEAR, "value": 1, "timestamp": at(13_000)}]),
        ("plain", [{**APPLE, "value": b"green", "timestamp": None}, {**PEAR, "value": b"yellow", "timestamp": None}]),
        (
            "wares",
            [
                {**APPLE, "value": '{"colour":"green","sizes":{"s":1}}', "timestamp": at(12_000)},
                {**PEAR, "value": '{"colour":"yellow","sizes":{"s":1}}', "timestamp": at(13_000)},
            ],
        ),
        (
            "per-window",
            [
                {**APPLE, "window_start": at(0), "window_end": at(10_000), "value": 1, "timestamp": at(1)},
                {**APPLE, "window_start": at(10_000), "window_end": at(20_000), "value": 1, "timestamp": at(12_000)},
                {**PEAR, "window_start": at(10_000), "window_end": at(20_000), "value": 1, "timestamp": at(13_000)},
            ],
        ),
        (
            "per-session",
            [
                {**APPLE, "session_start": at(1), "session_end": at(1), "value": 1},
                {**APPLE, "session_start": at(12_000), "session_end": at(12_000), "value": 1},
                {**PEAR, "session_start": at(13_000), "session_end": at(13_000), "value": 1},
            ],
        ),
        (
            "history",
            [
                {**APPLE, "valid_from": at(1), "valid_to": at(12_000), "value": "red"},
                {**APPLE, "valid_from": at(12_000), "valid_to": None, "value": "green"},
                {**PEAR, "valid_from": at(13_000), "valid_to": None, "value": "yellow"},
            ],
        ),
    ],
)
def test_every_kind_of_store_is_exported_with_its_columns(
    store: str, expected: list[dict[str, Any]], script: str, state: str, tmp_path: Path
) -> None:
    report = export_state(script, store, f"parquet:{tmp_path / 'out.parquet'}", path=state)
    found = pq.read_table(report.path)

    def order(row: dict[str, Any]) -> tuple[str, datetime | None]:
        return row["key"], row.get("window_start") or row.get("session_start") or row.get("valid_from")

    assert expected == sorted(found.to_pylist(), key=order)
    assert list(expected[0]) == found.column_names
    assert (len(expected), 2, tmp_path / "out.parquet") == (report.rows, report.tasks, report.path)
    assert [] == list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("as_of", "expected"),
    [
        (0, {}),
        (1, {"apple": "red"}),
        (11_999, {"apple": "red"}),
        (12_000, {"apple": "green"}),
        (13_000, {"apple": "green", "pear": "yellow"}),
    ],
)
def test_versioned_store_is_shown_as_of_a_time(as_of: int, expected: dict[str, str], script: str, state: str) -> None:
    found = rows(look(script, "history", as_of=as_of), path=state)

    assert expected == {row["key"]: row["value"] for row in found}


def test_as_of_shows_what_get_finds_at_every_time(script: str) -> None:
    """Among them are deletions, late records, and times whose versions the retention of 20 s has ended."""
    view = look(script, "history")
    with OfflineStore.in_memory(view.builder, TaskId(0, 0), view.application.config) as opened:
        for key, value, timestamp in [("a", "1", 1_000), ("b", "1", 5_000), ("a", None, 9_000), ("b", "2", 8_000)]:
            opened.store.put(key, value, timestamp)
        for key, value, timestamp in [("a", "2", 30_000), ("b", "3", 35_000), ("b", "late", 20_000), ("c", "1", 3)]:
            opened.store.put(key, value, timestamp)
        for as_of in range(0, 40_000, 500):
            batches = StoreSelection(view.application, "history", as_of).batches(opened, TaskId(0, 0))
            shown = {row["key"]: row["value"] for batch in batches for row in batch.to_pylist()}
            found = {key: opened.store.get(key, as_of) for key in "abc"}

            assert {key: record.value for key, record in found.items() if record is not None} == shown, as_of


def test_raw_rows_are_the_bytes_that_are_stored(script: str, state: str) -> None:
    assert {b"apple": (2).to_bytes(8), b"pear": (1).to_bytes(8)} == {
        row["key"]: row["value"] for row in rows(look(script, "totals", raw=True), path=state)
    }


@pytest.mark.parametrize(
    ("store", "key"),
    [
        ("totals", b"apple"),
        ("per-window", WindowKeySchema(1).pack(b"apple", 10_000, 0)[PREFIX_BYTES:]),
        ("per-session", SessionKeySchema(1).pack(b"apple", 10_000, 12_000)[PREFIX_BYTES:]),
    ],
)
def test_headers_are_a_column_of_stores_that_keep_them(store: str, key: bytes, script: str, tmp_path: Path) -> None:
    view = StoreSelection(Application(script, {"dsl.store.format": "headers"}), store)
    headers = (("trace", b"\x01"), ("empty", None))
    with OfflineStore.in_memory(view.builder, TaskId(0, 1), view.application.config) as opened:
        opened.restore([(key, (7).to_bytes(8), 12_000, headers)])
        (batch,) = view.batches(opened, TaskId(0, 1))
    (row,) = batch.to_pylist()
    with _WRITERS["csv"](tmp_path / "rows.csv", batch.schema) as writer:
        writer.write_batch(batch)

    assert {**APPLE, "value": 7} == {name: row[name] for name in (*APPLE, "value")}
    assert [{"key": "trace", "value": b"\x01"}, {"key": "empty", "value": None}] == row["headers"]
    assert '"[{""key"": ""trace"", ""value"": ""01""}' in (tmp_path / "rows.csv").read_text()
    assert "headers" not in look(script, store).schema.names


def test_columns_and_types_may_be_chosen(script: str, state: str) -> None:
    value = pa.struct([("sizes", pa.map_(pa.string(), pa.int64())), ("colour", pa.string()), ("weight", pa.int32())])
    wanted = pa.schema([("value", value), ("key", pa.string()), ("timestamp", pa.int64())])
    found = rows(look(script, "wares"), wanted, path=state)

    assert {
        "value": {"sizes": [("s", 1)], "colour": "green", "weight": None},
        "key": "apple",
        "timestamp": 12_000,
    } == found[0]


def test_column_of_a_wrong_type_or_name_is_refused(script: str, state: str) -> None:
    with pytest.raises(ConfigError, match=r"column 'value' of store 'wares' cannot be shown as int64: .*; give a sch"):
        rows(look(script, "wares"), pa.schema([("value", pa.int64())]), path=state)
    with pytest.raises(ConfigError, match=r"store 'wares' has no columns \['colour'\]; there are task, partition, key"):
        rows(look(script, "wares"), pa.schema([("colour", pa.string())]), path=state)


@pytest.mark.parametrize("kind", _WRITERS)
def test_an_exported_file_is_on_the_disk_before_it_has_its_name_and_the_name_is_too(
    kind: str, script: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    before, after = Synced(monkeypatch, lambda: not target.exists()), Synced(monkeypatch, target.exists)
    export_state(script, "plain", f"{kind}:{target}", path=state)

    assert before.is_whole(target)
    assert after.has_name(target)


def test_json_lines_and_csv_have_the_same_columns(script: str, state: str, tmp_path: Path) -> None:
    export_state(script, "plain", f"json:{tmp_path / 'out.jsonl'}", path=state)
    export_state(script, "plain", f"csv:{tmp_path / 'out.csv'}", path=state)
    export_state(script, "history", f"json:{tmp_path / 'history.jsonl'}", path=state, as_of=5)

    first = (tmp_path / "out.jsonl").read_text().splitlines()[0]
    assert {**APPLE, "value": "677265656e", "timestamp": None} == json.loads(first)
    assert ['"task","partition","key","value","timestamp"', '"0_1",1,"apple","677265656e",'] == (
        (tmp_path / "out.csv").read_text().splitlines()[:2]
    )
    assert {
        **APPLE,
        "valid_from": "1970-01-01T00:00:00.001Z",
        "valid_to": "1970-01-01T00:00:12.000Z",
        "value": "red",
    } == (json.loads((tmp_path / "history.jsonl").read_text()))


def test_copies_are_read_as_the_folder_itself(script: str, state: str, tmp_path: Path) -> None:
    """The folder above, a copy of one task under its name, and one whose name tells no task."""
    whole = rows(look(script, "totals"), path=state)
    shutil.copytree(Path(state) / "0_1", tmp_path / "kept" / "0_1")
    shutil.copytree(Path(state) / "0_1", tmp_path / "checkpoint")

    assert whole == rows(look(script, "totals"), path=str(tmp_path))
    assert whole == rows(look(script, "totals"), path=str(tmp_path / "kept" / "0_1"))
    assert [{**row, "task": None, "partition": None} for row in whole] == rows(
        look(script, "totals"), path=str(tmp_path / "checkpoint")
    )
    settings = StreamsConfig({"state.dir": str(tmp_path)})
    report = export_state(script, "totals", f"csv:{tmp_path / 'out.csv'}", config=settings)
    assert len(whole) == report.rows


def test_readers_share_a_folder_and_workers_keep_them_out(script: str, state: str) -> None:
    part = state_parts(look(script, "totals"), state)[1]
    lock = FileLock(Path(state) / "0_1" / ".lock")
    assert lock.take("4711")
    with pytest.raises(LockError, match="is in use by process 4711; stop the application"):
        list(part_batches(look(script, "totals"), part))
    lock.release()

    with part.opened(look(script, "totals")) as first, part.opened(look(script, "totals")) as second:
        assert list(first.rows()) == list(second.rows())
        assert not lock.take()
    assert lock.take()
    lock.release()


def test_a_folder_that_nobody_can_lock_is_said_to_be_one(
    script: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = state_parts(look(script, "totals"), state)[1]
    (Path(state) / "0_1" / ".lock").touch()

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(LockError, match=r"0_1' cannot be locked: .*No locks available.*; read a copy of it"):
        list(part_batches(look(script, "totals"), part))


def test_bootstrap_is_read_like_the_state_made_of_it(script: str, tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps({"id": f"k{n}", "n": n, "at": n * 1000}) + "\n" for n in range(40)))
    stores = [StoreBootstrap("totals", str(source), key="id", value="n", timestamp="at")]
    offline: dict[str, Any] = {"engine": "local", "processes": 1, "changelog": "base-only", "source_offsets": None}
    bootstrap(script, stores, out=tmp_path / "made", partitions=3, **offline)
    before = sorted(path.read_bytes() for path in (tmp_path / "made").rglob("*") if path.is_file())
    found = rows(look(script, "totals"), path=str(tmp_path / "made"))

    assert {f"k{n}": (n, at(n * 1000)) for n in range(40)} == {r["key"]: (r["value"], r["timestamp"]) for r in found}
    assert {"0_0", "0_1", "0_2"} == {row["task"] for row in found}
    assert before == sorted(path.read_bytes() for path in (tmp_path / "made").rglob("*") if path.is_file())
    with pytest.raises(ConfigError, match=r"has no store 'wares'; it has \['totals'\]"):
        rows(look(script, "wares"), path=str(tmp_path / "made"))
    other = script_in(tmp_path, "shop_changed")
    Path(other).write_text(
        Path(other).read_text().replace('Materialized("totals")', 'Materialized("totals", key_serde=Serdes.bytes())')
    )
    with pytest.raises(BootstrapError, match=r"was written by another topology: key_serde was .StringSerde"):
        rows(look(other, "totals"), path=str(tmp_path / "made"))


def test_changelog_topic_is_read_as_what_a_worker_would_restore(
    script: str, state: str, embedded_cluster: EmbeddedCluster
) -> None:
    settings = {"application.id": "shop", "bootstrap.servers": embedded_cluster.bootstrap_servers}
    topic = "shop-history-changelog"
    embedded_cluster.create_topics(topic)
    changes: list[tuple[bytes, bytes | None, int]] = [
        (b"apple", b"red", 1),
        (b"apple", b"green", 12_000),
        (b"pear", b"yellow", 13_000),
        (b"fig", b"x", 13_001),
        (b"fig", None, 13_002),
    ]
    with ChangelogOutput(StreamsConfig(settings), topic, 1) as write:
        for key, value, timestamp in changes:
            write((key, value, timestamp, ()))
    view = StoreSelection(Application(script, settings), "history")
    found = [row for row in rows(view, topic=topic) if row["key"] != "fig"]
    forgotten = StoreSelection(Application(script, settings), "forgotten")

    assert rows(look(script, "history"), path=state) == found
    assert {"green"} == {r["value"] for r in rows(StoreSelection(view.application, "history", 12_500), topic=topic)}
    assert {"apple": "green", "pear": "yellow"} == {r["key"]: r["value"] for r in rows(forgotten, topic=topic)}


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Ware:
    name: str
    sizes: Iterable[int]


def test_objects_of_other_serdes_become_json() -> None:
    number = uuid.UUID(int=5)

    assert {"left": {"name": "a", "sizes": [1, 2]}, "right": None} == plain(Pair(Ware("a", (1, 2)), None))
    assert f'{{"id":"{number}","raw":"AA=="}}' == json_text({"id": number, "raw": b"\0"})


def test_time_is_a_date_or_a_number() -> None:
    assert (0, 1000) == (time_of("0"), time_of("1970-01-01T01:00:01+01:00"))
    with pytest.raises(ConfigError, match=r"as_of is 'soon', which is no time \(.*\); write 2026-01-01T00:00Z"):
        time_of("soon")


@pytest.mark.parametrize(
    ("store", "said", "error", "text"),
    [
        ("totalz", {}, UnknownStateStoreError, r"no store of 'shop' is named 'totalz'; there are \['forgotten', "),
        ("totals", {"as_of": 5}, ConfigError, "store 'totals' keeps no history, it is a key-value store; leave as_of"),
        ("forgotten", {}, ConfigError, "is kept in memory, so nothing of it is on disk; read its changelog"),
        ("totals", {"path": "nowhere"}, ConfigError, "there is no state of store 'totals' in 'nowhere'; name the stat"),
        ("totals", {"topic": "t"}, ConfigError, "both the folder '.*' and the topic 't' are to be read; name one"),
        ("totals", {"topic": "t", "path": None}, ConfigError, r"no brokers are named \(bootstrap.servers\), and topic"),
        ("totals", {"to": "xml:out"}, ConfigError, "'xml:out' says not where to write; expected parquet:PATH, csv:PA"),
        ("totals", {"to": "csv:."}, ConfigError, "'.' is there already; name a new file, or delete that one"),
        ("totals", {"to": "csv:no/out"}, ConfigError, "there is no folder '.*no' to write 'out' into"),
    ],
)
def test_what_cannot_be_exported_is_said(
    store: str, said: dict[str, Any], error: type[Exception], text: str, script: str, state: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"to": f"csv:{tmp_path / 'out.csv'}", "path": state, **said}

    with pytest.raises(error, match=text):
        export_state(script, store, **options)
    assert not (tmp_path / "out.csv").exists()
