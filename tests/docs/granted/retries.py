"""Payments, and a function that charges them."""

from pykstreams import StreamsBuilder


def charge(payment: str) -> str:
    return f"charged {payment}"


builder = StreamsBuilder()
payments = builder.stream("payments", str, str)
