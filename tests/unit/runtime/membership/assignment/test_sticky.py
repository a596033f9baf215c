"""The sticky assignor, and the fallback to what was; ``test_recorded_groups.py`` has both beside Java."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.runtime.membership.assignment.group import ClientTasks, Group
from pykstreams.runtime.membership.assignment.sticky import assign_previous
from tests.interop.assignor_questions import random_groups
from tests.unit.runtime.membership.java_vectors import group_of
from tests.unit.runtime.membership.legacy_sticky import assign_sticky


@given(st.integers(0, 2**32))
def test_active_tasks_stay_where_they_were_when_lags_are_not_known(seed: int) -> None:
    group = group_of(next(random_groups(seed, 1)))
    decided = assign_previous(group)
    known = {task.id for task in group.tasks}
    for client in group.clients:
        assert client.previous_active & known <= decided.clients[client.process_id].active
    assert decided.probing
    _each_task_is_active_once(group, decided.clients.values())


@given(st.integers(0, 2**32))
def test_the_sticky_assignor_has_each_task_once(seed: int) -> None:
    group = group_of(next(random_groups(seed, 1)))
    decided = assign_sticky(group)
    assert not decided.probing
    _each_task_is_active_once(group, decided.clients.values())


def _each_task_is_active_once(group: Group, shares: Iterable[ClientTasks]) -> None:
    counts = Counter(task for share in shares for task in share.active)
    assert counts == Counter(task.id for task in group.tasks)


def test_too_few_clients_for_all_standby_tasks_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    group = next(
        group
        for group in map(group_of, random_groups(1, 500))
        if len(group.clients) == 1 and group.configs.num_standby_replicas == 1 and any(t.stateful for t in group.tasks)
    )
    assign_sticky(group)
    [warning] = [message for message in caplog.messages if "standby" in message]
    assert "which are to have 1 each: there are no more instances, of which" in warning
