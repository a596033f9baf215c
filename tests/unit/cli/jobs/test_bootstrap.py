"""``pykstreams bootstrap``: what it shows, what it finds, what it deletes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pykstreams.cli.app import cli
from pykstreams.cli.exit_codes import ExitCode
from pykstreams.state.bulk.manifest import publish
from tests.unit.state.bulk.bulk_support import ID, Part, bootstrap, counts, rows_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = bootstrap(tmp_path, [(counts(), {0: Part(rows_of({"a": "1", "b": "2"}), 2), 1: Part([], 0)})])
    publish(tmp_path, made)
    return tmp_path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["bootstrap", *map(str, arguments)], catch_exceptions=False)


def test_verify_says_that_a_bootstrap_is_whole(folder: Path) -> None:
    size = (folder / "stores/counts/0_0/0-0-0.sst").stat().st_size

    assert call("verify", folder).output == f"bootstrap {ID} is whole: 1 files, {size} bytes\n"


def test_verify_names_what_is_damaged(folder: Path) -> None:
    path = folder / "stores/counts/0_0/0-0-0.sst"
    path.write_bytes(b"?" + path.read_bytes()[1:])
    found = call("verify", folder)

    assert found.exit_code == ExitCode.USAGE
    assert "stores/counts/0_0/0-0-0.sst is damaged: its sha256 is " in found.output
    assert f"1 of 1 files of bootstrap {ID} are not as they were written" in found.output
    assert call("verify", "--quick", folder).exit_code == 0


def test_inspect_shows_stores_tasks_and_offsets(folder: Path) -> None:
    lines = call("inspect", folder).output.splitlines()
    size = (folder / "stores/counts/0_0/0-0-0.sst").stat().st_size

    assert lines[:5] == [
        f"bootstrap    {ID}",
        "application  shop",
        "made         1970-01-01 00:00:00 UTC",
        "changelog    write",
        "goes on at   orders 0: 10, 1: 11",
    ]
    assert [line.split() for line in lines[7:]] == [
        ["counts", "key-value", "timestamped", "0_0", "2", "1", str(size), "2"],
        ["counts", "key-value", "timestamped", "0_1", "0", "0", "0", "0"],
    ]
    assert json.loads(call("inspect", "--format", "json", folder).output)["id"] == ID


def test_gc_deletes_what_the_bootstrap_does_not_need(folder: Path) -> None:
    stray = folder / "stores/counts/0_1/5-0-0.sst"
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"12345")

    assert call("gc", "--dry-run", folder).output == "stores/counts/0_1/5-0-0.sst\n1 files, 5 bytes could be deleted\n"
    assert stray.exists()
    assert call("gc", folder).output == "stores/counts/0_1/5-0-0.sst\n1 files, 5 bytes were deleted\n"
    assert not stray.exists()
    assert call("verify", folder).exit_code == 0


def test_a_folder_without_manifest_is_refused(tmp_path: Path) -> None:
    for command in ("verify", "inspect", "gc"):
        found = call(command, tmp_path)

        assert found.exit_code == ExitCode.USAGE
        assert "manifest.json is missing" in found.output
