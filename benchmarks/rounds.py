"""The order of programs in each round: whatever a program leaves behind, dirty pages of the broker or a warm processor,
meets the one that comes next, so each comes behind each other one equally often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def in_order(programs: Sequence[T], round_number: int) -> list[T]:
    """Returns the programs in the order of a round, from 0 on.

    In as many rounds as there are programs, twice as many where their number is odd, each program comes once, or twice,
    directly behind each other one (the Latin squares of E. J. Williams, 1949).

    >>> [in_order("abcd", number) for number in range(4)]
    [['a', 'b', 'd', 'c'], ['b', 'c', 'a', 'd'], ['c', 'd', 'b', 'a'], ['d', 'a', 'c', 'b']]
    """
    count = len(programs)
    if not count:
        return []
    zigzag = [(number + 1) // 2 if number % 2 else -(number // 2) for number in range(count)]
    found = [programs[(place + round_number) % count] for place in zigzag]
    return found[::-1] if count % 2 and round_number % (2 * count) >= count else found
