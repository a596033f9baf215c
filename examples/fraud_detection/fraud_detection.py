"""Tells of payments above the limit that their card had when they were made, in whatever order records come.

    pykstreams run examples/fraud_detection/fraud_detection.py --bootstrap-servers localhost:9092

``limits`` holds the limit of each card in cents (an 8-byte integer) from the time of the record on, ``payments`` JSON
such as ``{"shop": "tea house", "cents": 12000}`` under the card; ``alerts`` gets the payments above the limit, and
those of cards without one.

The table is *versioned*: it keeps every limit of the last day, and a payment is joined with the one that was valid at
its time, although others have come since. The *grace* is for the other side: a payment waits until a minute of stream
time has passed, and so is joined with a limit that comes after it.
"""

from dataclasses import dataclass
from datetime import timedelta

from pykstreams import Joined, Materialized, Stores, StreamsBuilder, Topology

application_id = "fraud-detection"

day = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Payment:
    shop: str
    cents: int


@dataclass(frozen=True, slots=True)
class CheckedPayment:
    shop: str
    cents: int
    limit: int | None


def with_limit(payment: Payment, limit: int | None) -> CheckedPayment:
    return CheckedPayment(payment.shop, payment.cents, limit)


def is_suspicious(card: str, payment: CheckedPayment) -> bool:
    return payment.limit is None or payment.cents > payment.limit


def build() -> Topology:
    builder = StreamsBuilder()
    kept = Materialized[str, int](Stores.persistent_versioned_key_value_store("limits", day))
    limits = builder.table("limits", str, int, materialized=kept)
    (
        builder.stream("payments", str, Payment)
        .left_join(limits, with_limit, joined=Joined(name="limit-of-payment", grace_period=timedelta(minutes=1)))
        .filter(is_suspicious, name="suspicious")
        .to("alerts")
    )
    return builder.build()
