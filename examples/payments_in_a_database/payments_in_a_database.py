"""Writes each payment into a table of a database exactly once, whatever dies.

    pip install pykstreams[sql]
    sqlite3 payments.db "create table payments (account text, cents integer)"
    pykstreams run examples/payments_in_a_database/payments_in_a_database.py --bootstrap-servers localhost:9092

``payments`` holds JSON such as ``{"cents": 250}``, keyed by account. Rows and the offset behind their records are
committed in one transaction of the database; a worker that is killed anywhere, or that others have replaced, leaves no
row out and writes none twice. ``DATABASE_URL`` names another database, such as
``postgresql+psycopg://user@host/shop`` (with ``pip install psycopg[binary]``).
"""

import os
from dataclasses import dataclass

from pykstreams import SqlSink, StreamsBuilder, Topology

application_id = "payments-in-a-database"


@dataclass(frozen=True, slots=True)
class Payment:
    cents: int


def build(url: str = os.environ.get("DATABASE_URL", "sqlite:///payments.db")) -> Topology:
    table: SqlSink[str, Payment] = SqlSink(
        url,
        "insert into payments (account, cents) values (:account, :cents)",
        row=lambda account, payment: {"account": account, "cents": payment.cents},
    )
    builder = StreamsBuilder()
    (
        builder.stream("payments", str, Payment)
        .filter(lambda account, payment: payment.cents != 0)
        .to_sql(table, name="payments-table")
    )
    return builder.build()
