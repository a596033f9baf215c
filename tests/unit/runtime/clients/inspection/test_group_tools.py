"""Requests of tools for a group: what passes is tried again in time, and what is refused says why."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients.coordinator_requests import GroupSettings
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.inspection.group_tools import GroupRequests, GroupTools, GroupView


class Requests:
    """A coordinator that fails with some errors first."""

    group = GroupSettings("shop", None, 1, 1)

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)

    def view(self) -> GroupView:
        if self.errors:
            raise GroupError(KafkaError(self.errors.pop(0)))
        return GroupView("classic", ())

    def commit(self, *_: Any) -> None:
        self.view()


def tools(*errors: int, patience_s: float = 60) -> GroupTools:
    return GroupTools(cast("GroupRequests", Requests(*errors)), SystemClock(), patience_s)


def test_coordinator_that_loads_is_asked_again() -> None:
    assert tools(KafkaError.COORDINATOR_LOAD_IN_PROGRESS).view() == GroupView("classic", ())


def test_patience_with_a_coordinator_ends() -> None:
    with pytest.raises(ClusterError, match=r"asking for the members of group 'shop' failed: .*COORDINATOR_LOAD"):
        tools(*[KafkaError.COORDINATOR_LOAD_IN_PROGRESS] * 2, patience_s=0).view()


def test_worker_that_has_started_meanwhile_is_told() -> None:
    with pytest.raises(ClusterError, match="the group has members again: stop all workers"):
        tools(KafkaError.UNKNOWN_MEMBER_ID).set_offsets({})
