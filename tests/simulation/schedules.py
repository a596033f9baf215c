"""How many schedules are drawn, and the loop that every simulation has."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from pykstreams import StreamsBuilder, StreamsConfig
from pykstreams.topology.plan import TopologyPlan
from tests.simulation.cluster import Cluster, Sent, simulated

SCHEDULES = int(os.environ.get("SIMULATION_SCHEDULES", "60"))
"""Schedules of each kind of join; the nightly run sets SIMULATION_SCHEDULES=10000.

Without the hash check of foreign-key joins, the sixth schedule at the latest goes wrong; the rarest of the mistakes
that tests make on purpose shows in the 16th, then in the 39th and the 43rd.
"""

_WHOLE = 150
"""The number of schedules that stands for all of SCHEDULES when the night draws more."""


def schedules(count: int) -> int:
    """Returns how many to draw where SCHEDULES is not right: ``count``, and by night as many times more.

    Fewer do where a join has many kinds, and more are needed where what goes wrong is rare.
    """
    return max(count, count * SCHEDULES // _WHOLE)


@dataclass(frozen=True, eq=False, slots=True)
class Join:
    """A kind of join to be put through the scheduler.

    :param define: adds the join to a builder; its result is materialized in the store ``result``, and may be written
        to the topic ``out``, whose keys and values are text then.
    :param partitions: partition counts of the topics that it reads or writes.
    :param draw: draws the input, each topic's records in order.
    :param expected: the relational join of what the topics hold in the end, key -> row by topic.
    """

    define: Callable[[StreamsBuilder], object]
    partitions: Mapping[str, int]
    draw: Callable[[Random], list[Sent]]
    expected: Callable[[Mapping[str, Mapping[Any, Any]]], dict[Any, Any]]
    caches: tuple[int, ...] = (0, 0, 10_000_000)
    """Sizes of the record cache, of which each schedule draws one."""


def final_rows(sent: list[Sent]) -> dict[str, dict[Any, Any]]:
    """What each topic holds as a table when all is said."""
    tables: dict[str, dict[Any, Any]] = {}
    for record in sent:
        table = tables.setdefault(record.topic, {})
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value
    return tables


@functools.cache
def planned(join: Join, cache: int) -> tuple[TopologyPlan, StreamsConfig]:
    """The plan that all schedules of a join share, and its settings."""
    builder = StreamsBuilder()
    join.define(builder)
    config = simulated(**{"statestore.cache.max.bytes": cache})
    return builder.build().plan(config), config


def result_of(
    join: Join, seed: int, make_cluster: Callable[..., Cluster] = Cluster
) -> tuple[dict[Any, Any], dict[Any, Any], Cluster]:
    """Runs one schedule; gives what it made, what the join is, and the cluster, which is closed."""
    random = Random(seed)
    sent = join.draw(random)
    cluster = make_cluster(*planned(join, random.choice(join.caches)), join.partitions, seed)
    cluster.send(sent)
    try:
        cluster.run()
        made = cluster.rows("result")
    finally:
        cluster.close()
    return made, join.expected(final_rows(sent)), cluster


def check(
    join: Join,
    count: int = SCHEDULES,
    first_seed: int = 0,
    *,
    stored: bool = True,
    make_cluster: Callable[..., Cluster] = Cluster,
) -> None:
    """Runs schedules until one gives another result than the join, in the store or in the topic ``out``; its seed is
    in the message, and ``result_of`` runs it again. ``stored`` says whether there is a store.
    """
    for seed in range(first_seed, first_seed + count):
        made, expected, cluster = result_of(join, seed, make_cluster)
        assert made == (expected if stored else {}), f"seed {seed}"
        if "out" in join.partitions:
            written = {key: value.decode() for key, value in cluster.table("out").items()}
            assert {str(key).encode(): value for key, value in expected.items()} == written, f"seed {seed}"
