"""New random groups, shared out by Kafka Streams and by us; and whether what was recorded is still true."""

from __future__ import annotations

import json
import random

import pytest

from tests.interop.assignor_questions import assignments, assignor_groups, random_groups, subscriptions
from tests.interop.record_assignor import ASSIGNOR_COUNT, ASSIGNOR_SEED, COUNT, SEED, ask_java
from tests.unit.runtime.membership import assignor_vectors
from tests.unit.runtime.membership.java_vectors import (
    our_answer,
    recorded_assignors,
    recorded_groups,
    recorded_user_data,
)


@pytest.mark.nightly
def test_new_random_groups_are_shared_out_as_by_java(java_path: str) -> None:
    seed = random.SystemRandom().getrandbits(32)
    for question, java in ask_java(random_groups(seed, COUNT)):
        assert our_answer(question) == java, f"seed {seed}: {question}"


@pytest.mark.nightly
def test_assignors_of_users_share_out_new_random_groups_as_those_of_java(java_path: str) -> None:
    seed = random.SystemRandom().getrandbits(32)
    for question, java in ask_java(assignor_groups(seed, ASSIGNOR_COUNT)):
        assert assignor_vectors.our_answer(question) == java, f"seed {seed}: {question}"


@pytest.mark.nightly
def test_what_was_recorded_is_what_java_says(java_path: str) -> None:
    for questions, recorded in (
        (random_groups(SEED, COUNT), recorded_groups()),
        (assignor_groups(ASSIGNOR_SEED, ASSIGNOR_COUNT), recorded_assignors()),
        ((*subscriptions(), *assignments()), recorded_user_data()),
    ):
        asked = [list(pair) for pair in ask_java(questions)]
        assert json.loads(json.dumps(asked)) == [list(pair) for pair in recorded]
