"""Recorded answers of Kafka Streams' own classes, and the same questions put to ours.

``python -m tests.interop.record_assignor`` records them (needs Java and Maven).
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignment.group import Client, Group, GroupTasks, Task
from pykstreams.runtime.membership.assignment.high_availability import assign_high_availability
from pykstreams.runtime.membership.assignment.joined_group import Member, Topics, join
from pykstreams.runtime.membership.assignment.leader import lead
from pykstreams.runtime.membership.assignment.previous import lags, previous_tasks
from pykstreams.runtime.membership.assignment.sticky import assign_previous
from pykstreams.runtime.membership.assignment.threads import consumer_tasks
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import NEVER, AssignmentInfo
from pykstreams.runtime.membership.protocol.subscription_info import SubscriptionInfo
from tests.unit.runtime.membership.legacy_sticky import assign_sticky

FOLDER = Path(__file__).parent / "vectors"
GROUPS = FOLDER / "groups.jsonl.xz"
ASSIGNORS = FOLDER / "assignors.jsonl.xz"
USER_DATA = FOLDER / "user_data.json"

Said = dict[str, Any]


def recorded_groups() -> Iterator[tuple[Said, Said]]:
    """Random groups, and how Java shares out their tasks."""
    return _recorded(GROUPS)


def recorded_assignors() -> Iterator[tuple[Said, Said]]:
    """Random groups, and what the assignors and helpers of Java's users make of them."""
    return _recorded(ASSIGNORS)


def recorded_user_data() -> list[tuple[Said, Said]]:
    """Subscriptions and assignments, and the bytes that Java writes."""
    return [(question, answer) for question, answer in json.loads(USER_DATA.read_text())]


def subscription_of(said: Said) -> SubscriptionInfo:
    """The subscription of a question, as far as its version holds it."""
    version = said["version"]
    return SubscriptionInfo(
        ProcessId(UUID(said["process"])),
        {TaskId.parse(task): offset_sum for task, offset_sum in said["sums"].items()},
        said["endpoint"],
        said["unique"] if version >= 8 else 0,
        said["error"] if version >= 9 else 0,
        said["tags"] if version >= 11 else {},
        version,
        said["latest"],
    )


def assignment_of(said: Said) -> AssignmentInfo:
    """The assignment of a question."""
    return AssignmentInfo(
        tuple(TaskId.parse(task) for task in said["active"]),
        {TaskId.parse(task): _places(places) for task, places in said["standby"].items()},
        {HostInfo(host, port): _places(places) for host, port, places in said["hosts"]},
        {HostInfo(host, port): _places(places) for host, port, places in said["standbyHosts"]},
        said["error"],
        NEVER if said["next"] is None else said["next"],
        said["version"],
        said["common"],
    )


def group_of(said: Said) -> Group:
    """The group of a question."""
    racks: dict[TopicPartition, frozenset[str]] = {}
    tasks = []
    for name, (inputs, changelogs) in said["tasks"].items():
        task = TaskId.parse(name)
        places: list[set[TopicPartition]] = []
        for kind, replicas in (("in", inputs), ("log", changelogs)):
            places.append(set())
            for at, letters in enumerate(replicas):
                place = TopicPartition(f"{kind}-{task.subtopology}-{at}", task.partition)
                places[-1].add(place)
                if "-" not in letters:
                    racks[place] = frozenset(letters)
        tasks.append(Task(task, frozenset(places[0]), frozenset(places[1])))
    ends = {TaskId.parse(task): end for task, end in said["ends"].items()}
    settings = said["settings"]
    configs = AssignmentConfigs(
        acceptable_recovery_lag=settings["lag"],
        max_warmup_replicas=settings["warmups"],
        num_standby_replicas=settings["standbys"],
        rack_aware_assignment_tags=tuple(settings["tags"]),
        rack_aware_traffic_cost=settings["traffic"],
        rack_aware_non_overlap_cost=settings["overlap"],
        rack_aware_assignment_strategy=settings["strategy"],
    )
    return Group(tuple(_client(client, ends) for client in said["clients"]), tuple(tasks), configs, racks)


def our_answer(question: Said) -> Said:
    """The answer to a question about a group, in the form of Java's."""
    group = group_of(question)
    decided = assign_high_availability(group)
    clients = {}
    for client in sorted(group.clients, key=lambda client: client.process_id):
        tasks = decided.clients[client.process_id]
        stateful = {task.id for task in group.tasks if task.stateful}
        threads = {
            consumer: [
                _names(task for task in given.active if task in stateful),
                _names(given.standby),
                _names(task for task in given.active if task not in stateful),
            ]
            for consumer, given in consumer_tasks(client, tasks).items()
        }
        clients[str(client.process_id)] = {
            "active": _names(sorted(tasks.active)),
            "standby": _names(sorted(tasks.standby)),
            "threads": threads,
        }
    return {
        "probing": decided.probing,
        "clients": clients,
        "sent": _sent(question, group),
        "sticky": _shares(assign_sticky(group)),
        "previous": _shares(assign_previous(group)),
    }


def _sent(said: Said, group: Group) -> Said:
    """What a leader of the first client sends to each consumer."""
    inputs = {str(task.id): task.inputs for task in group.tasks}
    members = {}
    for client in said["clients"]:
        for consumer, sums in client["consumers"].items():
            offset_sums = {TaskId.parse(task): offset_sum for task, offset_sum in sums.items()}
            info = SubscriptionInfo(
                ProcessId(UUID(client["process"])), offset_sums, client["endpoint"], tags=client["tags"]
            )
            owned = frozenset(place for task in client["owned"][consumer] for place in inputs[task])
            members[consumer] = Member(info.encode(), owned, client["rack"])
    ends = {TaskId.parse(task): end for task, end in said["ends"].items()}
    leader = ProcessId(UUID(said["clients"][0]["process"]))
    topics = Topics(group.tasks, ends, group.racks)
    sent = lead(join(members, topics, group.configs), process_id=leader, now_ms=1_000)
    return {
        consumer: [
            _names(each.info.active),
            [str(place) for place in each.partitions],
            _names(sorted(each.info.standby)),
            each.info.next_rebalance_ms,
            [len(places) for _, places in sorted(each.info.hosts.items(), key=_host)],
            [len(places) for _, places in sorted(each.info.standby_hosts.items(), key=_host)],
        ]
        for consumer, each in sorted(sent.items())
    }


def _host(entry: tuple[HostInfo, frozenset[TopicPartition]]) -> str:
    return entry[0].host


def _shares(decided: GroupTasks) -> Said:
    return {
        str(client): {"active": _names(sorted(tasks.active)), "standby": _names(sorted(tasks.standby))}
        for client, tasks in decided.clients.items()
    }


def _client(said: Said, ends: dict[TaskId, int]) -> Client:
    sums = {
        consumer: {TaskId.parse(task): offset_sum for task, offset_sum in reported.items()}
        for consumer, reported in said["consumers"].items()
    }
    merged = {task: offset_sum for reported in sums.values() for task, offset_sum in reported.items()}
    owned = [TaskId.parse(task) for tasks in said["owned"].values() for task in tasks]
    active, standby = previous_tasks(merged, owned)
    return Client(
        ProcessId(UUID(said["process"])),
        {consumer: frozenset(reported) for consumer, reported in sums.items()},
        lags(merged, ends),
        active,
        standby,
        said["tags"],
        said["rack"],
    )


def _recorded(path: Path) -> Iterator[tuple[Said, Said]]:
    with lzma.open(path, "rt") as lines:
        for line in lines:
            question, answer = json.loads(line)
            yield question, answer


def _places(said: Iterable[tuple[str, int]]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, partition) for topic, partition in said)


def _names(tasks: Iterable[TaskId]) -> list[str]:
    return [str(task) for task in tasks]
