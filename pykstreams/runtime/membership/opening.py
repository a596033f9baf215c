"""Makes the member of the group that a worker is, for the protocol that ``group.protocol`` names."""

from __future__ import annotations

import base64
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from pykstreams.core.clock import Clock
from pykstreams.core.config import GroupProtocol, StreamsConfig
from pykstreams.runtime.clients.coordinators.group_coordinator import GroupCoordinator
from pykstreams.runtime.clients.coordinators.streams_coordinator import StreamsCoordinator
from pykstreams.runtime.clients.coordinators.streams_heartbeat import Joining
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignors.setting import user_assignor
from pykstreams.runtime.membership.assignors.task_assignor import TaskAssignor
from pykstreams.runtime.membership.classic.leadership import ClusterView, Leadership
from pykstreams.runtime.membership.classic.membership import ClassicMembership
from pykstreams.runtime.membership.classic.session import ClassicSession
from pykstreams.runtime.membership.classic.subscriptions import Introduction
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.member_state import State
from pykstreams.runtime.membership.membership import Membership
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.membership.streams.broker_topology import broker_topology
from pykstreams.runtime.membership.streams.membership import StreamsMembership
from pykstreams.runtime.membership.streams.session import StreamsSession
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.topology.plan import TopologyPlan


@dataclass(frozen=True, slots=True)
class GroupParts:
    """The parts of an application that its members need.

    :param prepare: checks the topics, and creates those that may be missing.
    :param instance: the id of the state directory, which several processes may share.
    :param embedded: whether the cluster is librdkafka's own.
    """

    plan: TopologyPlan
    config: StreamsConfig
    prepare: Callable[[], TopicLayout]
    cluster: ClusterView
    instance: str
    embedded: bool
    clock: Clock


def open_membership(
    parts: GroupParts, name: str, number: int | None, state: State, hosts: GroupHosts, *, shutdown: bool = False
) -> Membership:
    """Makes a member; it does nothing before it is started.

    :param number: of the worker; one without a number has no ``group.instance.id``.
    :param shutdown: whether it asks all members of the group to shut down.
    """
    client_id = f"{name}-membership"
    assignor = user_assignor(parts.config)
    if parts.config.group_protocol is GroupProtocol.STREAMS:
        return _streams(parts, client_id, state, hosts, shutdown=shutdown)
    return _classic(parts, client_id, number, state, hosts, assignor, shutdown=shutdown)


def _streams(parts: GroupParts, client_id: str, state: State, hosts: GroupHosts, *, shutdown: bool) -> Membership:
    config, clock = parts.config, parts.clock
    for_session, requests = (StreamsCoordinator.open(config, client_id, thread=None) for _ in range(2))
    endpoint = HostInfo.from_endpoint(config.application_server)
    session = StreamsSession(
        client_id,
        for_session,
        Joining(
            broker_topology(parts.plan, config.replication_factor),
            parts.instance,
            requests.group.rebalance_timeout_ms,
            None if endpoint is None else (endpoint.host, endpoint.port),
            _text(_consumer_settings(config, client_id, None).get("client.rack")),
            config.client_tags,
        ),
        member_id=_member_id(),
        clock=clock,
        max_poll_s=requests.group.rebalance_timeout_ms / 1000,
        session_s=requests.group.session_timeout_ms / 1000,
        shutdown=shutdown,
    )
    return StreamsMembership(session, requests, prepare=parts.prepare, state=state, hosts=hosts, clock=clock)


def _classic(
    parts: GroupParts,
    client_id: str,
    number: int | None,
    state: State,
    hosts: GroupHosts,
    assignor: TaskAssignor | None,
    *,
    shutdown: bool,
) -> Membership:
    config, plan, clock = parts.config, parts.plan, parts.clock
    requests = GroupCoordinator.open(config, client_id, thread=number, embedded=parts.embedded)
    process_id = ProcessId(uuid.UUID(parts.instance))
    settings = _consumer_settings(config, client_id, number)
    times = SessionTimes.of_settings(settings, requests.group.session_timeout_ms)
    for_session = GroupCoordinator.open(
        config, client_id, thread=number, embedded=parts.embedded, patience_s=times.patience_s
    )
    leadership = Leadership(
        plan,
        prepare=parts.prepare,
        cluster=parts.cluster,
        committed=for_session.committed,
        ends_s=times.patience_s,
        configs=AssignmentConfigs.of(config),
        process_id=process_id,
        clock=clock,
        assignor=assignor,
    )
    session = ClassicSession(
        client_id,
        for_session,
        leadership.assign,
        clock=clock,
        times=times,
        max_poll_s=requests.group.rebalance_timeout_ms / 1000,
        is_static=requests.group.instance_id is not None,
    )
    return ClassicMembership(
        session,
        requests,
        Introduction(
            process_id,
            config.application_server or None,
            config.client_tags,
            _text(settings.get("client.rack")),
            AssignorError.SHUTDOWN_REQUESTED if shutdown else AssignorError.NONE,
        ),
        stateful=frozenset(part.id for part in plan.subtopologies if part.changelogs),
        prepare=parts.prepare,
        state=state,
        hosts=hosts,
        clock=clock,
    )


def _consumer_settings(config: StreamsConfig, client_id: str, number: int | None) -> dict[str, object]:
    return config.get_main_consumer_configs(config.application_id, client_id, number or 1)


def _member_id() -> str:
    """An id as Java's clients make it for themselves (``Uuid.randomUuid``)."""
    return base64.urlsafe_b64encode(uuid.UUID(bytes=os.urandom(16), version=4).bytes).decode().rstrip("=")


def _text(setting: object) -> str | None:
    return None if setting is None else str(setting)
