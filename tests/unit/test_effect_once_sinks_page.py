"""The code of ``docs/guides/effect-once-sinks.md`` runs, and does what the page says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver
from tests.docs.pages import Page

PAGE = Page("docs/guides/effect-once-sinks.md")


def test_streams_of_the_page_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = PAGE.run()
    with closing(sqlite3.connect("payments.db")) as database:
        database.execute("create table payments (account text, cents integer)")
        database.execute("create table counts (account text, payments integer)")
        with TopologyTestDriver(names["builder"].build()) as driver:
            payments = driver.create_input_topic("payments", Serdes.string(), Serdes.long())
            payments.pipe_input("ada", 250)
            payments.pipe_input("ada", 0)
            transfers = driver.create_input_topic("transfers", Serdes.string(), Serdes.long())
            transfers.pipe_input("ada", 1)
            transfers.pipe_input("ada", 1)

        assert database.execute("select * from payments").fetchall() == [("ada", 250)]
        assert database.execute("select * from counts").fetchall() == [("ada", 1), ("ada", 2)]
