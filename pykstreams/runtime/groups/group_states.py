"""The states of a group, as brokers name them."""

from __future__ import annotations

from typing import Final

_UNKNOWN: Final = "Dead"


def told_state(state: str) -> str:
    """Returns a state with what it means where its name says something else.

    >>> told_state("Stable"), told_state("Dead")
    ('Stable', 'Dead (brokers know no such group: it has not run yet, or its offsets have expired)')
    """
    if state == _UNKNOWN:
        return f"{state} (brokers know no such group: it has not run yet, or its offsets have expired)"
    return state
