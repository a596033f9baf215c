"""The example ``payments_in_a_database.py`` in the test driver."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from examples.payments_in_a_database.payments_in_a_database import Payment, build
from pykstreams import Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver


def test_payments_are_rows_of_the_table(tmp_path: Path) -> None:
    file = tmp_path / "payments.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("create table payments (account text, cents integer)")
        with TopologyTestDriver(build(f"sqlite:///{file}")) as driver:
            payments = driver.create_input_topic("payments", Serdes.string(), JsonSerde(Payment))
            payments.pipe_input("ada", Payment(250))
            payments.pipe_input("ada", Payment(0))
            payments.pipe_input("tony", Payment(99))

        rows = database.execute("select account, cents from payments").fetchall()

    assert rows == [("ada", 250), ("tony", 99)]
