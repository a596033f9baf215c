"""What an application has left on the brokers, and how two such differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.interop.programs import T0

if TYPE_CHECKING:
    from tests.interop.turns import Turns

Shown: TypeAlias = tuple[Any, ...]
"""A record: partition, key, value, time since ``T0``, kind of time, headers."""
Committed: TypeAlias = Mapping[tuple[str, int], tuple[int, bytes]]

_NAME = "~"
"""Stands for the application's id."""
_OWN_TIMES_MS = 60_000
_JOIN_STORES = ("JOINTHIS", "JOINOTHER", "OUTERTHIS", "OUTEROTHER", "-this-", "-other-")
_BUFFERS = ("SUPPRESS", "limit-store", "-Buffer-", "join-buffer")
_REGISTRATIONS = "-subscription-registration-"
_FORGET, _FORGET_AND_ANSWER, _ANSWER, _ANSWER_IF_THERE = range(4)
"""Instructions of a registration, its second byte (``SubscriptionWrapper.Instruction``, 4.3.1)."""
_SETTING_OF_THE_TOPIC = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """Records and settings of each topic, and what was committed after each phase."""

    topics: Mapping[str, list[Shown]]
    settings: Mapping[str, Mapping[str, Any]]
    offsets: list[Mapping[str, Any]]


def outcome_of(turns: Turns, offsets: Collection[Committed]) -> Outcome:
    counts = turns.topics()
    places = [TopicPartition(name, number, 0) for name, count in counts.items() for number in range(count)]
    topics: dict[str, list[Shown]] = {_shown(turns, name): [] for name in counts}
    for message in turns.records(places):
        name = message.topic() or ""
        topics[_shown(turns, name)].append(_record(turns, name, message))
    for rows in topics.values():
        rows.sort(key=lambda row: row[0])  # stable: offsets within a partition
    return Outcome(topics, _settings(turns, counts), [_offsets(turns, committed) for committed in offsets])


def differences(
    judge: Outcome, other: Outcome, *, last_only: bool, loose: bool, asks_in_any_case: bool = False
) -> list[str]:
    """What differs, in words; nothing, if all is the same.

    :param last_only: whether to compare the last values only: what came and went in between depends on when caches
        were flushed.
    :param loose: whether to compare records without their order and times.
    :param asks_in_any_case: whether left rows of a foreign-key join may ask where Java only has something forgotten,
        since a worker of Python has died (docs/internals/foreign-key-joins.md).
    """
    said = []
    for name in sorted({*judge.topics, *other.topics}):
        one, two = judge.topics.get(name), other.topics.get(name)
        if one is None or two is None:
            said.append(f"topic {name} is there {'alone' if two is None else 'too'} with Java")
        elif last_only and loose and not name.endswith("-repartition"):
            said += _last_values_differ(name, _at_no_time(one), _at_no_time(two), tombstones=False)
        elif asks_in_any_case and _asks(name):
            said += _not_asked_in_any_case(name, one, two)
        elif loose:
            if sorted(map(repr, map(_without_time, one))) != sorted(map(repr, map(_without_time, two))):
                said.append(f"{name}: {len(one)} and {len(two)} records, not the same")
        elif last_only or (name.endswith("-changelog") and any(part in name for part in _BUFFERS)):
            said += _last_values_differ(name, one, two, tombstones=not last_only)
        elif one != two:
            at = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
            said.append(
                f"{name}: {len(one)} and {len(two)} records, first difference at {at}: "
                f"Java {one[at : at + 1]}, here {two[at : at + 1]}"
            )
    for name in sorted({*judge.settings, *other.settings}):
        if judge.settings.get(name) != other.settings.get(name):
            said.append(f"settings of {name}: Java {judge.settings.get(name)}, here {other.settings.get(name)}")
    if not last_only and not loose:
        for phase, (java, here) in enumerate(zip(judge.offsets, other.offsets, strict=True), 1):
            said += [
                f"committed for {place} after phase {phase}: Java {java.get(place)}, here {here.get(place)}"
                for place in sorted({*java, *here})
                if java.get(place) != here.get(place) and not (asks_in_any_case and _asks(place))
            ]
        if asks_in_any_case and other.offsets:
            said += _not_committed_to_the_end(other)
    return said


def _not_committed_to_the_end(outcome: Outcome) -> list[str]:
    said = []
    for place, (offset, _) in outcome.offsets[-1].items():
        topic, _, partition = place.rpartition("-")
        if _asks(place):
            ends = sum(row[0] == int(partition) for row in outcome.topics[topic])
            if offset not in ("all", ends):
                said.append(f"committed for {place} in the end: {offset} of {ends}")
    return said


def _record(turns: Turns, topic: str, message: Any) -> Shown:
    key, value, (kind, at) = message.key(), message.value(), message.timestamp()
    at -= T0
    if topic.endswith("-changelog"):
        if value is not None:  # contexts of records name their topics
            value = value.replace(turns.name.encode(), _NAME.encode() * len(turns.name))
        if any(part in topic for part in _BUFFERS) and at > _OWN_TIMES_MS:
            at = "the producer's"
        if key is not None and "-store-changelog" in topic and any(part in topic for part in _JOIN_STORES):
            key = key[:-4] + b"...."  # Java counts anew after a restart, Python goes on (docs/reference/differences.md)
    return message.partition(), key, value, at, kind, message.headers() or []


def _settings(turns: Turns, counts: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    names = [name for name in counts if name.startswith(f"{turns.name}-")]
    admin = AdminClient({"bootstrap.servers": turns.brokers, "log_level": 0})
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names]) if names else {}
    return {
        _shown(turns, resource.name): {
            "partitions": counts[resource.name],
            **{
                key: entry.value for key, entry in told.result(30).items() if int(entry.source) == _SETTING_OF_THE_TOPIC
            },
        }
        for resource, told in asked.items()
    }


def _offsets(turns: Turns, committed: Committed) -> dict[str, Any]:
    # with transactions some offsets are those of markers
    return {
        f"{_shown(turns, topic)}-{partition}": ("all" if turns.exactly_once else offset, metadata)
        for (topic, partition), (offset, metadata) in committed.items()
        if not topic.endswith("-changelog")  # the notes of Python's workers (runtime/worker/commits/work_notes.py)
    }


def _shown(turns: Turns, topic: str) -> str:
    return topic.replace(turns.name, _NAME)


def _without_time(row: Shown) -> Shown:
    return row[:3]


def _at_no_time(rows: list[Shown]) -> list[Shown]:
    return [(partition, key, value, None, None, None) for partition, key, value, *_ in rows]


def _asks(topic: str) -> bool:
    """Whether rows of a foreign-key join ask for their partners there."""
    return _REGISTRATIONS in topic.lower()


def _not_asked_in_any_case(name: str, one: list[Shown], two: list[Shown]) -> list[str]:
    """What differs from the records of Java, where each may ask in any case instead."""
    left = list(two)
    for row in one:
        sent = next((way for way in ([row], *_in_any_case(row)) if left[: len(way)] == way), None)
        if sent is None:
            return [f"{name}: Java {row}, here {left[:1]}"]
        del left[: len(sent)]
    return [f"{name}: here is {row}, too" for row in left]


def _in_any_case(row: Shown) -> list[list[Shown]]:
    """The records of a row that asks in any case: it forgets its old key, and asks by the new one, or by none."""
    partition, key, value, *rest = row
    instruction = value[1]
    if instruction == _ANSWER_IF_THERE:
        return [[(partition, key, _with(value, _ANSWER), *rest)]]
    if instruction == _FORGET_AND_ANSWER:
        return [[(partition, key, _with(value, _FORGET), *rest), (partition, None, _with(value, _ANSWER), *rest)]]
    return []


def _with(value: bytes, instruction: int) -> bytes:
    return value[:1] + bytes([instruction]) + value[2:]


def _last_values_differ(name: str, one: list[Shown], two: list[Shown], *, tombstones: bool) -> list[str]:
    last, last_here = _last_values(one, tombstones), _last_values(two, tombstones)
    return [
        f"{name}: last of {key}: Java {last.get(key)}, here {last_here.get(key)}"
        for key in sorted({*last, *last_here}, key=repr)
        if last.get(key) != last_here.get(key)
    ]


def _last_values(rows: list[Shown], tombstones: bool) -> dict[Any, Shown]:
    last = {(partition, key): (value, at, headers) for partition, key, value, at, _, headers in rows}
    return {key: shown for key, shown in last.items() if tombstones or shown[0] is not None}
