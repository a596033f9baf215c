"""Random groups that the assignors and helpers of Java's users have shared out (``TaskAssignmentUtils``, 4.3.1)."""

from __future__ import annotations

import functools

import pytest

from tests.unit.runtime.membership.assignor_vectors import our_answer
from tests.unit.runtime.membership.java_vectors import Said, recorded_assignors

PARTS = 10


@functools.cache
def groups() -> list[tuple[Said, Said]]:
    return list(recorded_assignors())


def test_there_are_groups_in_which_each_step_moves_tasks() -> None:
    answers = [java for _, java in groups()]
    assert len(answers) >= 500
    assert sum(java["dealt"]["stateless"] != java["dealt"]["stateful"] for java in answers) > 40
    assert sum(java["dealt"]["all"] != java["dealt"]["stateless"] for java in answers) > 10
    assert sum("standby" in java["dealt"] for java in answers) > 200
    assert sum(java["dealt"].get("standbyRacks") != java["dealt"].get("standby") for java in answers) > 15


@pytest.mark.parametrize("part", range(PARTS))
def test_assignors_and_helpers_decide_as_those_of_java(part: int) -> None:
    for said, java in groups()[part::PARTS]:
        assert our_answer(said) == java, said
