"""Store reads as the benchmark of cogroup counts them."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.programs.counting import CountingStores
from benchmarks.programs.event_serdes import json, text
from benchmarks.programs.topologies import TOPOLOGIES
from pykstreams import KeyValue
from pykstreams.testing import TopologyTestDriver

EVENTS = [(number, key, amount) for amount in (1, 2) for number in (1, 2, 3) for key in ("a", "b")]


def run(workload: str) -> tuple[int, list[KeyValue[Any, Any]]]:
    """How many reads there were, and the output."""
    stores = CountingStores()
    config = {"application.id": "reads", "statestore.cache.max.bytes": 0, "dsl.store.suppliers.class": stores}
    with TopologyTestDriver(TOPOLOGIES[workload]("in", "out"), config) as driver:
        for number, key, amount in EVENTS:
            driver.create_input_topic(f"in-{number}", text, json).pipe_input(key, {"amount": amount})
        return stores.reads, driver.create_output_topic("out", text, json).read_key_values()


@pytest.mark.parametrize(("workload", "reads_per_record"), [("cogroup", 1), ("cogroup-joins", 3)])
def test_cogroup_reads_one_row_per_record_and_joins_read_one_of_each_table(
    workload: str, reads_per_record: int
) -> None:
    reads, _ = run(workload)

    assert reads == reads_per_record * len(EVENTS)


def test_both_ways_give_the_same_customers() -> None:
    assert run("cogroup")[1] == run("cogroup-joins")[1]
