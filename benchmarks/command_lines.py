"""What several command lines read alike (no name of the standard library: scripts import this folder first)."""

from __future__ import annotations


def whole_numbers(text: str) -> list[int]:
    """Reads whole numbers that are joined by commas, for ``argparse``.

    >>> whole_numbers("1,20_000")
    [1, 20000]
    """
    return [int(part) for part in text.split(",")]
