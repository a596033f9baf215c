"""The writing of changelogs that tasks of a backfill have logged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pykstreams import Consumed, Materialized, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.bulk.application import Application
from pykstreams.bulk.backfills.logged_rows import write_changelog
from pykstreams.bulk.backfills.records import SENT
from pykstreams.bulk.backfills.step import BackfillStep
from pykstreams.bulk.engines.sorting import SortedRuns
from pykstreams.state.interfaces.store import ChangelogRow

CONFIG = {"application.id": "shop", "bootstrap.servers": "nowhere:9"}
MODULE = "pykstreams.bulk.backfills.logged_rows"


@pytest.fixture
def step(tmp_path: Path) -> BackfillStep:
    builder = StreamsBuilder()
    consumed = Consumed(key_serde=Serdes.string(), value_serde=Serdes.string())
    builder.table("customers", consumed, materialized=Materialized("customers"))
    application = Application(builder.build(StreamsConfig(CONFIG)), CONFIG)
    return BackfillStep(application, application.layout(1), 0, 0, str(tmp_path), str(tmp_path), None, {}, logs=True)


def logged(folder: Path, name: str, *keys: bytes) -> str:
    rows = [{"topic": "t", "partition": 0, "key": key, "value": b"v", "timestamp": 5, "number": 1} for key in keys]
    pq.write_table(pa.Table.from_pylist(rows, SENT), folder / name)
    return str(folder / name)


def test_two_attempts_at_one_changelog_share_no_files(
    step: BackfillStep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark may begin a second one that writes its sorted runs while the first one still reads its own."""
    scratch = tmp_path / "logged"
    files = [logged(tmp_path, "a.parquet", b"a", b"c"), logged(tmp_path, "b.parquet", b"b")]
    attempts: list[list[bytes | None]] = []
    runs: list[Path] = []

    @contextmanager
    def output(config: StreamsConfig, topic: str, partition: int) -> Iterator[Callable[[ChangelogRow], None]]:
        written: list[bytes | None] = []
        attempts.append(written)

        def write(row: ChangelogRow) -> None:
            if len(attempts) == 1:
                write_changelog(step, "customers", 0, files, str(scratch))
            elif not runs:
                runs.extend(scratch.rglob("*.arrow"))
            written.append(row[0])

        yield write

    monkeypatch.setattr(f"{MODULE}.ChangelogOutput", output)
    monkeypatch.setattr(f"{MODULE}.SortedRuns", partial(SortedRuns, run_bytes=1))
    write_changelog(step, "customers", 0, files, str(scratch))

    assert attempts == [[b"a", b"b", b"c"]] * 2
    assert len(runs) == 4, "two of each"
    assert list(scratch.rglob("*")) == []
