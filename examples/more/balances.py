"""Keeps what each owner has in all accounts together, while accounts change, move to another owner and close.

    pykstreams run examples/more/balances.py --bootstrap-servers localhost:9092

``accounts`` is a table: the last JSON of an account number, such as ``{"owner": "ann", "cents": 1250}``, is
the account as it is now, and a null closes it. Grouped by owner, an account that changes is first subtracted as
it was, and then added as it is now, so ``balances`` is right also for the owner who gave an account away.
"""

from dataclasses import dataclass

from pykstreams import Grouped, StreamsBuilder, Topology

application_id = "balances"


@dataclass(frozen=True, slots=True)
class Account:
    owner: str
    cents: int


def cents_by_owner(number: str, account: Account) -> tuple[str, int]:
    return account.owner, account.cents


def add(owner: str, cents: int, total: int) -> int:
    return total + cents


def subtract(owner: str, cents: int, total: int) -> int:
    return total - cents


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.table("accounts", str, Account)
        .group_by(cents_by_owner, Grouped(name="by-owner"))
        .aggregate(int, add, subtract, materialized="totals")
        .to_stream()
        .to("balances")
    )
    return builder.build()
