"""The steps of commits for tests of what stands beside them: a group that takes every commit, and no ends of topics."""

from __future__ import annotations

from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.worker.commits.commit import CommitSteps, Deliveries
from tests.unit.runtime.cluster_fakes import FakeClock, FakeMembership


def steps_over(deliveries: Deliveries) -> CommitSteps:
    """Makes the steps of a worker that is alone in its group."""
    clock = FakeClock()
    return CommitSteps(
        deliveries=deliveries,
        membership=FakeMembership(),
        end_offsets=lambda partitions: {},
        on_committed=lambda offsets: None,
        clock=clock,
        outage=Outage("commits", clock, 300),
    )
