"""The clients with which an application speaks to its group beside those of its workers."""

from __future__ import annotations

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.runtime.assembly.application_parts import ApplicationParts, reset_policy
from pykstreams.runtime.clients.consumers.group_consumer import GroupConsumer
from pykstreams.runtime.clients.coordinators.coordinator_requests import group_settings
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.member_state import NoState
from pykstreams.runtime.membership.opening import GroupParts, open_membership
from pykstreams.runtime.membership.shutdown import ask_all_to_shut_down
from pykstreams.runtime.swap.bootstrap import Bootstrap, GroupStart
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.runtime.worker.start_offsets import StartOffsets

_UNTIL_ALL_ARE_TOLD_S = 60.0
"""How long a member that asks all to shut down waits for the leader, who waits for the slowest member."""


def start_group(app: ApplicationParts, layout: TopicLayout, bootstrap: Bootstrap, *, reset: bool) -> None:
    """Lets the group begin at the offsets of a bootstrap, unless it has begun there before."""
    bootstrap.check_tasks(layout)
    policy = StartOffsets(app.plan, reset_policy(app.config), app.admin.offsets_at, app.clock)
    group = GroupConsumer.open(app.supplier, app.config, f"{app.client_id}-bootstrap")
    try:
        GroupStart(
            bootstrap,
            app.plan,
            layout,
            group=group,
            offsets=app.admin,
            policy=lambda place: policy.start(place, because="is not in the bootstrap"),
            clock=app.clock,
        ).settle(reset=reset)
    finally:
        group.close(leave=True)


def ask_application_to_shut_down(app: ApplicationParts, layout: TopicLayout) -> StreamsError | None:
    """Asks all members of the group to shut down; returns why that could not be seen, if so."""
    name = f"{app.client_id}-shutdown"
    membership = open_membership(group_parts(app), name, None, NoState(), GroupHosts(), shutdown=True)
    return ask_all_to_shut_down(membership, layout, app.clock, _UNTIL_ALL_ARE_TOLD_S)


def is_static(config: StreamsConfig) -> bool:
    """Whether workers are static members, which keep their places in the group while they are away."""
    return group_settings(config, 1).instance_id is not None


def group_parts(app: ApplicationParts) -> GroupParts:
    """The parts that each member of the group is made of."""
    return GroupParts(
        app.plan, app.config, app.topics.prepare, app.admin, app.instance, embedded=app.embedded, clock=app.clock
    )
