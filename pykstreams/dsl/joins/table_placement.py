"""Refuses joins of tables whose rows would not meet, since their producers put keys into other partitions.

A stream is repartitioned for a join; a table is not, since its rows are where they are: the user says where they go.
"""

from __future__ import annotations

from pykstreams.core.errors import TopologyError
from pykstreams.dsl.place import Place
from pykstreams.topology.placement.key_placement import KeyPlacement

_CURE = ".to_stream().repartition().to_table() makes a table of it whose keys lie where Kafka's murmur2 puts them"


def check_placed_alike(left: Place, right: Place) -> None:
    """Raises ``TopologyError`` for tables that are to be joined by their keys, and lie by different partitioners."""
    if left.placement == right.placement:
        return
    moved = left if right.placement is None else right
    raise TopologyError(
        f"{left.name} (keys lie as {_named(left.placement)} puts them) and {right.name} (as {_named(right.placement)} "
        "does) are joined by their keys, which lie in different partitions; have their producers use one partitioner, "
        f"or join another table in place of {moved.name}: {_CURE}"
    )


def check_referred_placement(table: Place) -> None:
    """Raises ``TopologyError`` for a table that rows of another refer to, if they would not be sent to its rows."""
    if table.placement is not None:
        raise TopologyError(
            f"the keys of {table.name} lie as {_named(table.placement)} puts them, and rows that refer to them go "
            f"where murmur2 does; have its producers use murmur2_random, or join another table in its place: {_CURE}"
        )


def _named(placement: KeyPlacement | None) -> str:
    return "murmur2" if placement is None else placement.name
