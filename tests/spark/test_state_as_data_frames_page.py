"""The commands and scripts of ``docs/guides/state-as-data-frames.md`` run as they stand there, but for the folders."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pykstreams.cli.app import cli
from pykstreams.spark import export_state
from tests.docs.pages import Page
from tests.unit.bulk.state_of_tests import state_in

PAGE = Page("docs/guides/state-as-data-frames.md")
PRICES = """
from pykstreams import Consumed, Materialized, Serdes, Stores, StreamsBuilder

application_id = "prices"

def build():
    builder = StreamsBuilder()
    text = Serdes.string()
    history = Stores.persistent_versioned_key_value_store("prices", 86_400_000)
    builder.table("in", Consumed(key_serde=text, value_serde=text),
                  materialized=Materialized(history, key_serde=text, value_serde=text))
    return builder
"""
SHOP = """
from pykstreams import Consumed, Materialized, Serdes, StreamsBuilder
from pykstreams.serdes import JsonSerde
from tests.docs.pages import Page

application_id = "shop"

def build():
    builder = StreamsBuilder()
    text, json = Serdes.string(), JsonSerde()
    builder.table("in", Consumed(key_serde=text, value_serde=json),
                  materialized=Materialized("orders", key_serde=text, value_serde=json))
    return builder
"""
DECEMBER, JANUARY = 1_767_139_200_000, 1_767_312_000_000
"""The last and the second day of a year, in ms."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A machine with two applications and their state."""
    for name in ("srv", "var/lib/prices", "var/lib/shop"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "srv" / "prices.py").write_text(PRICES)
    (tmp_path / "srv" / "shop.py").write_text(SHOP)
    prices = [("tea", "3", DECEMBER), ("tea", "4", JANUARY), ("rum", "9", JANUARY)]
    orders = [
        (f"o{number}", f'{{"customer":"c{number % 2}","amount":{number}.5}}', JANUARY + number) for number in range(4)
    ]
    state_in(tmp_path / "var/lib/prices", str(tmp_path / "srv" / "prices.py"), "prices", prices)
    state_in(tmp_path / "var/lib/shop", str(tmp_path / "srv" / "shop.py"), "shop", orders)
    return tmp_path


def moved(text: str, folder: Path) -> str:
    return text.replace("/var/", f"{folder}/var/").replace("/srv/", f"{folder}/srv/")


def test_scripts_of_the_page_show_what_it_says(spark: Any, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in PAGE.code:
        exec(compile(moved(block.text, folder), "docs/guides/state-as-data-frames.md", "exec"), names)

    assert "partition|count" in capfd.readouterr().out
    assert 3 == names["prices"].count()
    assert [("tea", "3")] == [(row.key, row.value) for row in names["new_year"].collect()]
    sums = names["orders"].groupBy("value.customer").sum("value.amount").collect()
    assert {"c0": 3.0, "c1": 5.0} == {row[0]: row[1] for row in sums}


def test_commands_of_the_page_write_the_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "srv")
    for command in PAGE.commands:
        _, *arguments = shlex.split(moved(command, folder))
        state = [] if "--state-dir" in arguments else ["--state-dir", f"{folder}/var/lib/prices"]
        done = CliRunner().invoke(cli, [*arguments, *state])
        assert 0 == done.exit_code, (command, done.output)

    assert 3 == pq.read_table("prices.parquet").num_rows
    assert [("tea", 3)] == [(row["key"], row["value"]) for row in pyarrow.csv.read_csv("prices.csv").to_pylist()]

    (folder / "srv" / "prices.parquet").unlink()
    (call,) = re.findall(r"`(export_state\(.*?\))`", PAGE.text)
    assert 3 == eval(moved(call, folder), {"export_state": export_state}).rows
