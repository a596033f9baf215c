"""Keeps what each owner has in all accounts together, while accounts change, move to another owner and close.

    pykstreams run examples/balances.py --bootstrap-servers localhost:9092

``accounts`` is a table: the last JSON of an account number, such as ``{"owner": "ann", "cents": 1250}``, is
the account as it is now, and a null closes it. Grouped by owner, an account that changes is first subtracted as
it was, and then added as it is now, so ``balances`` is right also for the owner who gave an account away.
"""

from dataclasses import dataclass

from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder, Topology
from pykstreams.serdes import JsonSerde

application_id = "balances"


@dataclass(frozen=True, slots=True)
class Account:
    owner: str
    cents: int


def build() -> Topology:
    builder = StreamsBuilder()
    text, number = Serdes.string(), Serdes.long()
    (
        builder.table("accounts", Consumed(key_serde=text, value_serde=JsonSerde(Account)))
        .group_by(
            lambda _, account: (account.owner, account.cents),
            Grouped(key_serde=text, value_serde=number, name="by-owner"),
        )
        .aggregate(
            lambda: 0,
            lambda _, cents, total: total + cents,
            lambda _, cents, total: total - cents,
            materialized=Materialized("totals", key_serde=text, value_serde=number),
        )
        .to_stream()
        .to("balances")
    )
    return builder.build()
