"""Refuses stores and internal topics whose names nobody gave, where the application wants them all (KIP-1111)."""

from __future__ import annotations

from pykstreams.core.errors import TopologyError


def refuse(generated: str) -> None:
    """Raises ``TopologyError`` where there are any.

    :param generated: what has a generated name, as text.
    """
    if generated:
        raise TopologyError(
            f"ensure.explicit.internal.resource.naming is on, and these have generated names: {generated}; "
            "name them by Materialized, Grouped, Repartitioned or StreamJoined"
        )
