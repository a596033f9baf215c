"""A bootstrap that lies in no file system of this machine: made, verified, read and taken over there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pykstreams.bulk.application import Application
from pykstreams.cli.app import cli
from pykstreams.core.errors import BootstrapError, ConfigError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.swap.bootstrap import Bootstrap
from pykstreams.spark import StoreBootstrap, backfill, bootstrap, export_state
from pykstreams.state.bulk.manifest import publish, read, verify
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from tests.unit.bulk.state_of_tests import script_in

ROWS = [{"id": f"k{number}", "n": number} for number in range(50)]
OFFLINE: dict[str, Any] = {"engine": "local", "changelog": "base-only", "source_offsets": None, "partitions": 2}


@pytest.fixture
def script(tmp_path: Path) -> str:
    return script_in(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> str:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    return str(tmp_path / "rows.parquet")


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[str]:
    """The URL of a folder in a file system of its own."""
    url = f"memory://{tmp_path.name}/shop"
    yield url
    files = fsspec.filesystem("memory").store  # of all its instances
    for path in [path for path in files if path.startswith(f"/{tmp_path.name}/")]:
        del files[path]


def made(script: str, source: str, out: str | Path) -> Any:
    spec = StoreBootstrap("totals", source, key="id", value="n", timestamp=5)
    return bootstrap(script, [spec], out=out, processes=1, **OFFLINE)


def test_a_bootstrap_is_made_checked_and_taken_over_where_only_a_url_leads(
    script: str, source: str, remote: str, tmp_path: Path
) -> None:
    local, away = made(script, source, tmp_path / "local").manifest, made(script, source, remote).manifest
    config = Application(script).config
    assert [] == verify(remote, read(remote))
    assert [task.content for task in local.stores["totals"].tasks.values()] == [
        task.content for task in away.stores["totals"].tasks.values()
    ]

    given = Bootstrap(remote, Application(script).plan, config)
    place, rows = Application(script).store("totals"), 0
    for partition, files in given.manifest.stores["totals"].tasks.items():
        task = TaskId(place.part.id, partition)
        made_of = [StoreToMake(place.builder, files, 0, place.changelog)]
        take_over(tmp_path / str(partition), task, given.folder, made_of, config, "mark")
        with OfflineStore.in_folder(place.builder, task, config, tmp_path / str(partition)) as store:
            rows += len(list(store.engine_rows()))
    assert len(ROWS) == rows
    assert len(ROWS) == export_state(script, "totals", f"parquet:{tmp_path / 'totals.parquet'}", path=remote).rows

    for command in ("verify", "inspect"):
        done = CliRunner().invoke(cli, ["bootstrap", command, remote])
        assert 0 == done.exit_code, done.output
    with pytest.raises(BootstrapError, match="holds a bootstrap already"):
        made(script, source, remote)
    with pytest.raises(BootstrapError, match=r"holds bootstrap \w+ already"):
        publish(remote, away)


@pytest.mark.parametrize(("damage", "said"), [(None, "is missing"), (b"?", "is damaged: its sha256 is")])
def test_a_damaged_file_there_is_refused_and_nothing_is_loaded(
    damage: bytes | None, said: str, script: str, source: str, remote: str, tmp_path: Path
) -> None:
    manifest = made(script, source, remote).manifest
    system, place = fsspec.filesystem("memory"), Application(script).store("totals")
    files = manifest.stores["totals"].tasks[0]
    path = f"{remote}/{files.files[0].path}"
    content = system.cat_file(path)
    system.rm(path)
    if damage is not None:
        system.pipe_file(path, damage + content[1:])
    made_of = [StoreToMake(place.builder, files, 0, place.changelog)]

    assert [f"{files.files[0].path} {said}"] == [
        found[: len(f"{files.files[0].path} {said}")] for found in verify(remote, manifest)
    ]
    with pytest.raises(BootstrapError, match=said):
        take_over(tmp_path / "task", TaskId(0, 0), remote, made_of, Application(script).config, "mark")
    assert [] == list((tmp_path / "task").iterdir())


def test_what_the_bootstrap_does_not_need_is_deleted_there(script: str, source: str, remote: str) -> None:
    made(script, source, remote)
    system, stray = fsspec.filesystem("memory"), "stores/totals/0_1/of-another-attempt.sst"
    system.pipe_file(f"{remote}/{stray}", b"12345")
    done = CliRunner().invoke(cli, ["bootstrap", "gc", remote])

    assert f"{stray}\n1 files, 5 bytes were deleted\n" == done.output
    assert not system.exists(f"{remote}/{stray}")
    assert [] == verify(remote, read(remote))


def test_refused_rows_are_kept_there_too(script: str, source: str, remote: str) -> None:
    spec = StoreBootstrap("totals", source, key="id", value="id", timestamp=5, on_error="rejects")
    report = bootstrap(script, [spec], out=remote, processes=1, **OFFLINE)
    (path,) = report.stores["totals"].rejects

    assert len(ROWS) == len(fsspec.filesystem("memory").cat_file(f"{remote}/{path}").splitlines())


def test_a_backfill_needs_a_folder_of_this_machine(script: str, source: str, remote: str) -> None:
    with pytest.raises(ConfigError, match="is on no file system of this machine, and what passes between the steps"):
        backfill(script, {"in": source}, out=remote, **OFFLINE)


def test_a_folder_that_nothing_is_known_of_is_named(script: str) -> None:
    with pytest.raises(ConfigError, match=r"no file system is found for 'lake://shop': Protocol not known: lake"):
        Bootstrap("lake://shop", Application(script).plan, Application(script).config)
