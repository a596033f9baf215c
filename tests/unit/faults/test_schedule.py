"""Schedules of faults: the same for the same seed, readable again, one fault at a time where that is promised."""

import itertools

import pytest

from tests.faults.schedule import CLUSTER, Fault, plan, read

NODES = ("kafka-1", "kafka-2", "kafka-3")
FLEETS = {"eos-lone": ("eos-lone-1",), "eos-several": ("eos-several-1", "eos-several-2")}


def planned(seed: int = 1, **changes: object) -> list[Fault]:
    wanted: dict[str, object] = {"length_s": 1800, "nodes": NODES, "fleets": FLEETS, **changes}
    return plan(seed=seed, **wanted)  # type: ignore[arg-type]


def test_same_seed_plans_the_same_faults() -> None:
    assert planned() == planned()
    assert planned(1) != planned(2)


def test_printed_schedule_is_read_back() -> None:
    printed = "\n".join(["seed 1, 30 minutes with 3 brokers; the faults:", *map(str, planned())])

    assert read(printed) == planned()


def test_another_application_leaves_the_faults_of_the_rest_as_they_are() -> None:
    fewer = planned(fleets={"eos-lone": ("eos-lone-1",)})

    assert fewer == [fault for fault in planned() if not fault.target.startswith("eos-several")]


@pytest.mark.parametrize("lane", [(CLUSTER, *NODES), *FLEETS.values()])
def test_faults_of_one_lane_do_not_overlap(lane: tuple[str, ...]) -> None:
    faults = [fault for fault in planned() if fault.target in lane]

    assert len(faults) > 10
    assert all(one.at_s + one.length_s < other.at_s for one, other in itertools.pairwise(faults))


def test_every_fault_is_over_before_the_end() -> None:
    assert all(fault.at_s + fault.length_s < 1800 for fault in planned())


def test_one_broker_is_neither_rolled_nor_asked_for_other_leaders() -> None:
    assert CLUSTER not in {fault.target for fault in planned(nodes=("kafka",))}
