"""Flows at the least cost, beside all flows there are."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.runtime.membership.assignment.flow import FlowNetwork

COSTS = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=5)


@given(COSTS, st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_as_much_flows_as_can_and_at_the_least_cost(costs: list[list[int]], room: list[int]) -> None:
    network = FlowNetwork(len(costs) + 3)
    for task, row in enumerate(costs):
        network.add(network.SOURCE, task, capacity=1)
        for client, cost in enumerate(row):
            network.add(task, len(costs) + client, capacity=1, cost=cost)
    for client, capacity in enumerate(room):
        network.add(len(costs) + client, len(costs) + 3, capacity=capacity)
    amount = min(len(costs), sum(room))
    assert network.fill() == amount
    network.cheapen()
    flows = [(task, target - len(costs)) for task in range(len(costs)) for target in network.targets(task)]
    assert len({task for task, _ in flows}) == len(flows) == amount
    assert all(sum(target == client for _, target in flows) <= room[client] for client in range(3))
    assert sum(costs[task][client] for task, client in flows) == _least(costs, room, amount)


def _least(costs: list[list[int]], room: list[int], amount: int) -> int:
    best = []
    for choice in itertools.product((None, 0, 1, 2), repeat=len(costs)):
        if sum(at is not None for at in choice) == amount and all(choice.count(at) <= room[at] for at in range(3)):
            best.append(sum(costs[task][at] for task, at in enumerate(choice) if at is not None))
    return min(best)
