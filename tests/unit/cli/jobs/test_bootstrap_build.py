"""``pykstreams bootstrap APP``: what its options and files say, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pykstreams.cli.app import cli
from pykstreams.state.bulk.manifest import read

SCRIPT = """
from pykstreams import Consumed, Materialized, Serdes, StreamsBuilder
from pykstreams.serdes import JsonSerde

application_id = "shop"

def build():
    builder = StreamsBuilder()
    for name in ("customers", "products"):
        consumed = Consumed(key_serde=Serdes.string(), value_serde=JsonSerde())
        builder.table(name, consumed, materialized=Materialized(name))
    return builder
"""
OFFLINE = ["--engine", "local", "--processes", "1", "--changelog", "base-only", "--partitions", "2"]


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop_to_bootstrap.py"
    path.write_text(SCRIPT)
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "n": 1}\n{"id": "b", "n": 2}\n{"id": "b", "n": 3}\n')
    return str(path)


def run(shop: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bootstrap", shop, *OFFLINE, *arguments])


def test_one_store_is_made_as_the_options_say(shop: str, tmp_path: Path) -> None:
    out, offsets = tmp_path / "out", tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"customers": {"0": 5, "1": 6}}))
    one = ["--store", "customers", "--from", str(tmp_path / "rows.jsonl"), "--key", "id", "--on-error", "rejects"]
    result = run(shop, *one, "--out", str(out), "--source-offsets", str(offsets))

    assert 0 == result.exit_code, result.output
    assert "customers: 2 rows, refused: 1 DuplicateKeyError" in result.output
    assert "refused rows are in" in result.output
    assert {"customers": {0: 5, 1: 6}} == read(out).source_offsets


@pytest.mark.parametrize("kind", ["toml", "json"])
def test_several_stores_are_made_as_a_file_says(kind: str, shop: str, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / f"stores.{kind}"
    rows = str(tmp_path / "rows.jsonl")
    tables: Any = {name: {"from": rows, "key": "id", "latest": True} for name in ("customers", "products")}
    lines = [f'[stores.{name}]\nfrom = "{rows}"\nkey = "id"\nlatest = true\n' for name in tables]
    file.write_text(json.dumps({"stores": tables}) if kind == "json" else "".join(lines))
    result = run(shop, "--stores", str(file), "--source-offsets", "none", "--out", str(out))

    assert 0 == result.exit_code, result.output
    assert {"customers", "products"} == set(read(out).stores)


def test_a_file_of_stores_says_how_files_are_read(shop: str, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("id;n\n007;-\n")
    file = tmp_path / "stores.toml"
    of_files = 'format = "csv"\ndelimiter = ";"\nnulls = ["-"]\ntypes = {id = "string"}'
    file.write_text(f'[stores.customers]\nfrom = "{tmp_path / "rows.txt"}"\nkey = "id"\n{of_files}\n')
    result = run(shop, "--stores", str(file), "--source-offsets", "none", "--out", str(tmp_path / "out"))

    assert 0 == result.exit_code, result.output
    assert "customers: 1 rows\n" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no store is named; give --store NAME --from PATH --key COLUMN, or --stores FILE"),
        (["--store", "customers", "--key", "id"], "store customers has no rows; name them by --from PATH"),
        (["--store", "customers", "--from", "rows.jsonl"], "needs either key= or row="),
        (
            ["--store", "customers", "--from", "rows.jsonl", "--key", "id", "--source-offsets", "then"],
            "--source-offsets 'then' cannot be read",
        ),
    ],
)
def test_what_is_missing_is_said(arguments: list[str], said: str, shop: str, tmp_path: Path) -> None:
    result = run(shop, *arguments, "--out", str(tmp_path / "out"))

    assert 2 == result.exit_code
    assert said in result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[stores", "cannot be read"),
        ("[store.customers]", "names no stores; write a table [stores.NAME] for each"),
        ('[stores.customers]\nfrom = "rows.jsonl"\nkeys = "id"', "['keys'] are unknown"),
        ('[stores.customers]\nfrom = "topic:in"\nformat = "csv"', "['format'] say how files are read, and topic:in is"),
    ],
)
def test_a_file_of_stores_that_says_nothing_is_refused(text: str, said: str, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "stores.toml"
    file.write_text(text)
    result = run(shop, "--stores", str(file), "--out", str(tmp_path / "out"))

    assert 2 == result.exit_code
    assert said in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--latest"], "--latest is about the rows of --store; write that into the tables of"),
        (["--from", "other", "--on-error", "count"], "--from and --on-error are about the rows of --store"),
        (["--value", "n", "--key", "id"], "--key and --value are about the rows of --store"),
        (["--store", "customers", "--from", "rows"], "store customers is named by --store and in"),
    ],
)
def test_options_of_one_store_are_refused_beside_a_file_that_does_not_need_them(
    arguments: list[str], said: str, shop: str, tmp_path: Path
) -> None:
    file = tmp_path / "stores.toml"
    file.write_text(f'[stores.customers]\nfrom = "{tmp_path / "rows.jsonl"}"\nkey = "id"\n')
    result = run(shop, "--stores", str(file), *arguments, "--out", str(tmp_path / "out"))

    assert 2 == result.exit_code
    assert said in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("stores.toml", b'[stores.customers]\nfrom = "\xff"', "cannot be read"),
        ("stores.json", b'{"stores": "\xff"}', "cannot be read"),
        ("stores.json", b"[]", "names no stores; write a table [stores.NAME] for each"),
    ],
)
def test_a_file_of_stores_that_holds_something_else_is_refused(
    name: str, data: bytes, said: str, shop: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    result = run(shop, "--stores", str(tmp_path / name), "--out", str(tmp_path / "out"))

    assert 2 == result.exit_code
    assert said in result.output


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('latest = "false"', "latest = 'false'; expected true or false"),
        ("key = 5", "key = 5; expected a text"),
        ("value = 5", "value = 5; expected a text or a list of texts"),
        ("value = [1]", "value = [1]; expected a text or a list of texts"),
        ("timestamp = true", "timestamp = True; expected a text or a number of ms"),
        ('nulls = "-"', "nulls = '-'; expected a list of texts"),
        ("types = {id = 5}", "types = {'id': 5}; expected a table of texts"),
    ],
)
def test_a_file_of_stores_with_a_value_of_another_type_is_refused(
    line: str, said: str, shop: str, tmp_path: Path
) -> None:
    file = tmp_path / "stores.toml"
    key = "" if line.startswith("key") else 'key = "id"\n'
    file.write_text(f'[stores.customers]\nfrom = "{tmp_path / "rows.jsonl"}"\n{key}{line}\n')
    result = run(shop, "--stores", str(file), "--source-offsets", "none", "--out", str(tmp_path / "out"))

    assert 2 == result.exit_code
    assert f"store customers has {said}" in result.output


@pytest.mark.parametrize(
    "command",
    [["bootstrap", "SHOP", "--store", "customers", "--from", "rows.jsonl"], ["backfill", "SHOP", "--from", "in"]],
)
def test_without_the_extra_the_error_names_it(
    command: list[str], shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pykstreams.spark", None)
    result = CliRunner().invoke(
        cli, [word.replace("SHOP", shop) for word in command] + ["--out", str(tmp_path / "out")]
    )

    assert 2 == result.exit_code
    assert "state is made in bulk by the extra 'spark': pip install 'pykstreams[spark]'" in result.output
