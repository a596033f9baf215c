"""Percentiles of latencies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

SHOWN: Final = (50.0, 99.0, 99.9)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of all values do not exceed (nearest rank).

    >>> [percentile(range(1, 1001), percent) for percent in SHOWN]
    [500, 990, 999]
    """
    if not ordered:
        raise ValueError("there are no values")
    # a product such as 0.999 * 1000 may lie a little above the whole number that it is
    rank = math.ceil(round(percent / 100 * len(ordered), 6))
    return ordered[max(rank, 1) - 1]
