"""Requests to the coordinator of a streams group (KIP-1071): the heartbeat, and a look at the tasks of a member."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from confluent_kafka import KafkaError
from kafka.protocol.api_message import ApiMessage

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators import schemas
from pykstreams.runtime.clients.coordinators.coordinator_requests import CoordinatorRequests
from pykstreams.runtime.clients.coordinators.streams_heartbeat import (
    NO_TASKS,
    Endpoint,
    Heartbeat,
    Heartbeaten,
    Joining,
    SubtopologyOfGroup,
    Tasks,
    TopicOfGroup,
)
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.quiet_layouts import quiet_layouts

_TOPOLOGY_EPOCH: Final = 0
"""Kafka Streams 4.3.1 knows no other."""
_PRESENT_BYTES: Final = 1
"""The byte that says that a struct is there (KIP-893)."""


_Message: Any = type(ApiMessage)  # reads the layout of a class from the file that is named after it

with quiet_layouts():
    StreamsGroupHeartbeatRequest: Any = _Message("StreamsGroupHeartbeatRequest", (ApiMessage,), {}, load_json=schemas)
    StreamsGroupHeartbeatResponse: Any = _Message("StreamsGroupHeartbeatResponse", (ApiMessage,), {}, load_json=schemas)
    StreamsGroupDescribeRequest: Any = _Message("StreamsGroupDescribeRequest", (ApiMessage,), {}, load_json=schemas)
    StreamsGroupDescribeResponse: Any = _Message("StreamsGroupDescribeResponse", (ApiMessage,), {}, load_json=schemas)


class StreamsCoordinator(CoordinatorRequests):
    """The coordinator of a streams group."""

    def heartbeat(self, said: Heartbeat) -> Heartbeaten:
        """Joins, goes on or leaves, by the epoch; ``GroupError``: the member is not in the group, or was not heard."""
        answer = self.ask(_request(self.group.group, said))
        if answer.error_code:
            self._refused(answer.error_code, answer.error_message)
        return _answer(answer)

    def assigned(self, member_id: str) -> Tasks:
        """The tasks that the coordinator has assigned to a member (``StreamsGroupDescribe``).

        :raises GroupError: when it has no such member, or was not heard.
        """
        request = StreamsGroupDescribeRequest(
            max_version=0, group_ids=[self.group.group], include_authorized_operations=False
        )
        [group] = self.ask(request).groups
        if group.error_code:
            self._refused(group.error_code, group.error_message)
        for member in group.members:
            if member.member_id == member_id:
                return tasks_of(member.assignment) or NO_TASKS
        raise GroupError(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))

    def _refused(self, code: int, message: str | None) -> None:
        try:
            self.raise_for(code)
        except GroupError as error:
            if message:  # says more than the code: which topic, which epoch
                raise GroupError(KafkaError(code, message)) from error
            raise


def topology_bytes(parts: Iterable[SubtopologyOfGroup]) -> bytes:
    """Returns a topology in the layout in which a coordinator gets and keeps it."""
    return bytes(_topology(parts).encode(version=0, compact=True, tagged=True))[_PRESENT_BYTES:]


def _request(group: str, said: Heartbeat) -> Any:
    fields: dict[str, Any] = {}
    if said.joining is not None:
        fields.update(_introduction(said.joining))
    if said.tasks is not None:
        fields["active_tasks"] = _task_ids(said.tasks.active)
        fields["standby_tasks"] = _task_ids(said.tasks.standby)
        fields["warmup_tasks"] = _task_ids(said.tasks.warmup)
    return StreamsGroupHeartbeatRequest(
        max_version=0,
        group_id=group,
        member_id=said.member_id,
        member_epoch=said.epoch,
        endpoint_information_epoch=said.endpoints_epoch,
        shutdown_application=said.shutdown,
        **fields,
    )


def _introduction(joining: Joining) -> dict[str, Any]:
    request = StreamsGroupHeartbeatRequest
    endpoint = joining.endpoint
    return {
        "topology": _topology(joining.topology),
        "rebalance_timeout_ms": joining.rebalance_timeout_ms,
        "process_id": joining.process_id,
        "user_endpoint": None if endpoint is None else request.Endpoint(host=endpoint[0], port=endpoint[1]),
        "rack_id": joining.rack,
        "client_tags": [request.KeyValue(key=key, value=value) for key, value in joining.tags.items()],
    }


def _topology(parts: Iterable[SubtopologyOfGroup]) -> Any:
    return StreamsGroupHeartbeatRequest.Topology(
        epoch=_TOPOLOGY_EPOCH, subtopologies=[_subtopology(part) for part in parts]
    )


def _subtopology(part: SubtopologyOfGroup) -> Any:
    subtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology
    return subtopology(
        subtopology_id=str(part.id),
        source_topics=list(part.sources),
        source_topic_regex=[],
        state_changelog_topics=[_topic(topic) for topic in part.changelogs],
        repartition_sink_topics=list(part.repartition_sinks),
        repartition_source_topics=[_topic(topic) for topic in part.repartition_sources],
        copartition_groups=[
            subtopology.CopartitionGroup(
                source_topics=list(group.sources),
                source_topic_regex=[],
                repartition_source_topics=list(group.repartition_sources),
            )
            for group in part.copartition_groups
        ],
    )


def _topic(topic: TopicOfGroup) -> Any:
    info = StreamsGroupHeartbeatRequest.Topology.Subtopology.TopicInfo
    return info(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication,
        topic_configs=[info.KeyValue(key=key, value=value) for key, value in topic.configs],
    )


def _task_ids(tasks: Collection[TaskId]) -> list[Any]:
    by_subtopology: dict[int, list[int]] = {}
    for task in sorted(tasks):
        by_subtopology.setdefault(task.subtopology, []).append(task.partition)
    ids = StreamsGroupHeartbeatRequest.TaskIds
    return [ids(subtopology_id=str(number), partitions=found) for number, found in by_subtopology.items()]


def _answer(answer: Any) -> Heartbeaten:
    endpoints = answer.partitions_by_user_endpoint
    return Heartbeaten(
        answer.member_epoch,
        answer.heartbeat_interval_ms,
        answer.endpoint_information_epoch,
        None if answer.status is None else {one.status_code: one.status_detail for one in answer.status},
        tasks_of(answer),
        None if endpoints is None else tuple(map(_endpoint, endpoints)),
    )


def tasks_of(answer: Any) -> Tasks | None:
    """The tasks, which come all or not at all (``StreamsMembershipManager.onHeartbeatSuccess``, 4.3.1).

    :param answer: a heartbeat's answer, or the assignment in a description.
    """
    found = (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)
    if all(tasks is None for tasks in found):
        return None
    active, standby, warmup = (frozenset(_ids(tasks or ())) for tasks in found)
    return Tasks(active, standby, warmup)


def _ids(tasks: Iterable[Any]) -> Iterable[TaskId]:
    return (TaskId(int(one.subtopology_id), number) for one in tasks for number in one.partitions)


def _endpoint(found: Any) -> Endpoint:
    return Endpoint(
        found.user_endpoint.host,
        found.user_endpoint.port,
        _places(found.active_partitions),
        _places(found.standby_partitions),
    )


def _places(topics: Iterable[Any]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(one.topic, number) for one in topics for number in one.partitions)
