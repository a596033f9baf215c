"""Of rows with one time the last one counts, as they stand in the files, whatever their bytes are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pykstreams import Consumed, Materialized, Serdes, StreamsBuilder, StreamsConfig, TableJoined, Topology
from pykstreams.bulk.application import Application
from pykstreams.core.ids import TaskId
from pykstreams.spark import StoreBootstrap, bootstrap
from pykstreams.state.bulk.manifest import read
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.take_over import StoreToMake, take_over

TEXT = Serdes.string()
CONFIG = {"application.id": "shop"}
FILES = (
    [{"id": "a", "name": "y"}, {"id": "a", "name": "z"}, {"id": "b", "name": "z"}],
    [{"id": "a", "name": "x"}, {"id": "c", "name": "a"}, {"id": "b", "name": "y"}],
)


def topology() -> Topology:
    builder = StreamsBuilder()
    consumed = Consumed(key_serde=TEXT, value_serde=TEXT)
    kept, last = (Materialized[str, str](name, key_serde=TEXT, value_serde=TEXT) for name in ("kept", "last"))
    names = builder.table("names", consumed, materialized=kept)
    builder.stream("all", consumed).group_by_key().reduce(lambda one, other: other, materialized=last)
    others = builder.table("others", consumed)
    names.join(others, lambda one, other: one, foreign_key_extractor=str, table_joined=TableJoined(name="by"))
    return builder.build(StreamsConfig(CONFIG))


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
@pytest.mark.parametrize(
    ("store", "content"), [("kept", "entries"), ("last", "records"), ("by-subscription-store", "records")]
)
def test_of_rows_with_one_time_the_last_one_counts(kind: str, store: str, content: Any, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    for number, rows in enumerate(FILES):
        path = folder / f"part-{number}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=1)
        else:
            path.write_text("\n".join(map(json.dumps, rows)))
    spec = StoreBootstrap(store, folder, key="id", value="name", timestamp=7, content=content, latest=True)
    options: Any = {"engine": "local", "changelog": "base-only", "source_offsets": None, "partitions": 1}
    bootstrap(topology(), [spec], out=tmp_path / "out", config=CONFIG, **options)

    assert {b"a": b"x", b"b": b"y", b"c": b"a"} == names_in(tmp_path / "out", store)


def names_in(out: Path, store: str) -> dict[bytes, bytes]:
    """The name of each key; a subscription lies under its foreign key, which is the name here."""
    application = Application(topology(), CONFIG)
    place, task = application.store(store), TaskId(application.store(store).part.id, 0)
    files = StoreToMake(place.builder, read(out).stores[store].tasks[0], 0, place.changelog)
    take_over(out / "task", task, out, [files], application.config, "mark")
    with OfflineStore.in_folder(place.builder, task, application.config, out / "task", topic=place.changelog) as opened:
        rows = list(opened.engine_rows())
    if store == "by-subscription-store":
        return {key[5:]: key[4:5] for key, _ in rows}
    return {key: packed[-1:] for key, packed in rows}
