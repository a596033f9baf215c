"""Schedules of faults: the same for the same seed, readable again, one fault at a time where that is promised."""

import itertools

import pytest

from tests.faults.schedule import CLUSTER, INPUT, Action, Crew, Fault, plan, read

NODES = ("kafka-1", "kafka-2", "kafka-3")
LONE = Crew(("eos-lone-1",), "eos-lone-2")
SEVERAL = Crew(("eos-several-1", "eos-several-2"), "eos-several-3")
CREWS = {"eos-lone": LONE, "eos-several": SEVERAL}


def planned(seed: int = 1, **changes: object) -> list[Fault]:
    wanted: dict[str, object] = {"length_s": 1800, "nodes": NODES, "crews": CREWS, **changes}
    return plan(seed=seed, **wanted)  # type: ignore[arg-type]


def test_same_seed_plans_the_same_faults() -> None:
    assert planned() == planned()
    assert planned(1) != planned(2)


def test_printed_schedule_is_read_back() -> None:
    printed = "\n".join(["seed 1, 30 minutes with 3 brokers; the faults:", *map(str, planned())])

    assert read(printed) == planned()


def test_another_application_leaves_the_faults_of_the_rest_as_they_are() -> None:
    fewer = planned(crews={"eos-lone": LONE})

    assert fewer == [fault for fault in planned() if not fault.target.startswith("eos-several")]


@pytest.mark.parametrize("lane", [(CLUSTER, *NODES), (INPUT,), LONE.workers, (*SEVERAL.workers, SEVERAL.spare)])
def test_faults_of_one_lane_do_not_overlap(lane: tuple[str, ...]) -> None:
    faults = [fault for fault in planned() if fault.target in lane]

    assert len(faults) > 10
    assert all(one.at_s + one.length_s < other.at_s for one, other in itertools.pairwise(faults))


def test_every_fault_is_over_before_the_end() -> None:
    assert all(fault.at_s + fault.length_s < 1800 for fault in planned())


def test_one_broker_is_neither_rolled_nor_asked_for_other_leaders() -> None:
    assert CLUSTER not in {fault.target for fault in planned(nodes=("kafka",))}


def test_faults_of_every_kind_happen_when_none_are_named() -> None:
    assert {fault.action for fault in planned(length_s=7200)} == set(Action)


def test_only_the_kinds_of_faults_that_are_wanted_happen() -> None:
    found = planned(length_s=7200, wanted=(Action.CUT, Action.POISON))

    assert {(fault.action, fault.target == INPUT) for fault in found} == {(Action.CUT, False), (Action.POISON, True)}
    assert planned(wanted=()) == []


def test_a_worker_is_added_and_removed_only_where_there_are_several() -> None:
    found = [fault for fault in planned(length_s=7200) if fault.action in (Action.ADD, Action.REMOVE)]

    assert {fault.target for fault in found if fault.action is Action.ADD} == {SEVERAL.spare}
    assert {fault.target for fault in found} <= {*SEVERAL.workers, SEVERAL.spare}
