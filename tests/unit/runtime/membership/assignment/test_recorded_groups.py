"""Random groups whose tasks Kafka Streams has shared out (``HighAvailabilityTaskAssignor``, 4.3.1)."""

from __future__ import annotations

import functools

import pytest

from tests.unit.runtime.membership.java_vectors import Said, our_answer, recorded_groups

PARTS = 25
BY_NIGHT = range(10, PARTS)
"""The parts that only ``nightly`` runs: all of them take longer than any other unit test."""


@functools.cache
def groups() -> list[tuple[Said, Said]]:
    return list(recorded_groups())


def test_there_are_groups_of_all_sorts() -> None:
    answers = [java for _, java in groups()]
    settings = [said["settings"] for said, _ in groups()]
    assert len(answers) >= 2_000
    assert sum(java["probing"] for java in answers) > 500
    assert sum(bool(set_["tags"]) for set_ in settings) > 500
    for strategy in ("none", "min_traffic", "balance_subtopology"):
        assert sum(set_["strategy"] == strategy for set_ in settings) > 400


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.nightly if part in BY_NIGHT else ()) for part in range(PARTS)]
)
def test_tasks_are_on_the_same_consumers_as_with_java(part: int) -> None:
    for said, java in groups()[part::PARTS]:
        assert our_answer(said) == java, said
