"""Numbers with what they count, for messages."""

from __future__ import annotations


def with_noun(count: int | None, noun: str) -> str:
    """Returns a number with a noun whose plural has an "s".

    >>> with_noun(1, "partition"), with_noun(3, "partition")
    ('1 partition', '3 partitions')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
