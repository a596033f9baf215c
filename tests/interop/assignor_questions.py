"""Questions for ``java/Recorder.java``: what members say and random groups, from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, TypeVar

Question = dict[str, Any]
T = TypeVar("T")

NO_LIMIT = (1 << 63) - 1
STRATEGIES = ("none", "min_traffic", "balance_subtopology")


class Dice:
    """Random choices that depend on the seed and on nothing else, whatever the release of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def pick(self, *choices: T) -> T:
        return choices[self.below(len(choices))]


def random_groups(seed: int, count: int) -> Iterator[Question]:
    """Groups of all sorts: new and settled ones, with and without standbys, tags and racks."""
    dice = Dice(seed)
    for _ in range(count):
        yield _group(dice)


def assignor_groups(seed: int, count: int) -> Iterator[Question]:
    """The same sorts of groups, put to the assignors and helpers of users, which go by racks if both costs are set."""
    dice = Dice(seed)
    for question in random_groups(seed, count):
        settings = question["settings"]
        if dice.chance(0.8):
            costs = {
                name: dice.pick(1, 10) if settings[name] is None else settings[name] for name in ("traffic", "overlap")
            }
            settings = {**settings, **costs}
        yield {**question, "ask": "assignors", "settings": settings}


def _group(dice: Dice) -> Question:
    rack_aware = dice.chance(0.45)
    tagged = dice.chance(0.3)
    tasks = _tasks(dice, 3 if rack_aware else 4, 6 if rack_aware else dice.pick(3, 8, 8, 40))
    stateful = [task for task, (_, logs) in tasks.items() if logs]
    ends = {task: dice.pick(0, 90, 5_000, 70_000) for task in stateful}
    clients = _clients(dice, tagged)
    _spread_state(dice, clients, ends)
    _own(dice, clients, [task for task in tasks if task not in ends])
    return {
        "ask": "group",
        "tasks": tasks,
        "ends": ends,
        "clients": clients,
        "settings": {
            "lag": dice.pick(0, 100, 10_000, 10_000, NO_LIMIT),
            "warmups": dice.pick(1, 2, 2, 5),
            "standbys": dice.pick(0, 0, 1, 1, 2, 3),
            "tags": [] if not tagged else dice.pick(["zone"], ["zone", "cluster"], ["cluster"]),
            "strategy": dice.pick(*STRATEGIES[1:]) if rack_aware else "none",
            "traffic": dice.pick(None, 0, 1, 10),
            "overlap": dice.pick(None, 0, 1, 10),
        },
    }


def _tasks(dice: Dice, subtopologies: int, partitions: int) -> dict[str, tuple[list[str], list[str]]]:
    """Tasks with their inputs and changelogs, of each of which the racks of the replicas are told."""
    tasks = {}
    unknown = dice.chance(0.04)
    for subtopology in range(dice.between(1, subtopologies)):
        inputs, logs = dice.between(1, 2), dice.pick(0, 1, 1, 2)
        for partition in range(dice.between(1, partitions)):
            tasks[f"{subtopology}_{partition}"] = (
                [_replicas(dice, unknown) for _ in range(inputs)],
                [_replicas(dice, unknown) for _ in range(logs)],
            )
    return tasks


def _replicas(dice: Dice, unknown: bool) -> str:
    if unknown and dice.chance(0.1):
        return "-"
    return dice.pick("a", "b", "c", "ab", "bc", "ca", "abc")


def _clients(dice: Dice, tagged: bool) -> list[Question]:
    without_rack = dice.chance(0.05)
    clients: list[Question] = []
    for at in range(dice.pick(1, 2, 3, 4, 5, 8)):
        # ids on both sides of zero, as Java compares them, and both halves count
        high, low = dice.below(1 << 32), dice.below(1 << 16)
        clients.append(
            {
                "process": f"{high:08x}-0000-4000-{low:04x}-{at:012x}",
                "rack": None if without_rack and dice.chance(0.5) else dice.pick(*"abc"),
                "tags": {} if not tagged else {"zone": dice.pick(*"xyz"), "cluster": dice.pick(*"kl")},
                "consumers": {f"{chr(97 + at)}{thread}": {} for thread in range(dice.pick(1, 1, 2, 3, 6))},
            }
        )
    return clients


def _spread_state(dice: Dice, clients: list[Question], ends: dict[str, int]) -> None:
    """What each consumer says of the tasks: most have an active owner, and copies that are more or less behind."""
    if dice.chance(0.15):
        return
    new = {client["process"] for client in clients if dice.chance(0.25)}
    settled = [client for client in clients if client["process"] not in new]
    for task, end in ends.items():
        owner = dice.pick(*settled) if settled and dice.chance(0.85) else None
        for client in settled:
            consumers = list(client["consumers"].values())
            if client is owner:
                dice.pick(*consumers)[task] = -2
            elif dice.chance(0.4):
                dice.pick(*consumers)[task] = dice.pick(-3, 0, end // 2, max(end - 60, 0), end, end + 9)


def _own(dice: Dice, clients: list[Question], stateless: list[str]) -> None:
    """The tasks whose partitions each consumer owns: mostly those that it says are running, and stateless ones."""
    for client in clients:
        client["endpoint"] = f"host-{client['process'][:4]}-{client['process'][-1]}:80" if dice.chance(0.5) else None
        client["owned"] = {
            consumer: [task for task, offset_sum in sums.items() if offset_sum == -2 and dice.chance(0.95)]
            for consumer, sums in client["consumers"].items()
        }
    if dice.chance(0.7):
        for task in stateless:
            dice.pick(*dice.pick(*clients)["owned"].values()).append(task)


def subscriptions() -> Iterator[Question]:
    """Subscriptions in all versions."""
    sums: list[dict[str, int]] = [{}, {"0_0": -2}, {"0_3": 17, "0_11": -3, "1_0": -2, "2_7": NO_LIMIT, "12_1": 0}]
    for version in range(7, 12):
        for at, offset_sums in enumerate(sums):
            yield {
                "ask": "subscription",
                "version": version,
                "latest": 11,
                "process": f"f0000000-1234-4000-9abc-00000000000{at}",
                "endpoint": (None, "localhost:8080", "[::1]:1")[at],
                "sums": offset_sums,
                "unique": (0, 1, -128)[at],
                "error": (0, 4, 1)[at],
                "tags": ({}, {"zone": "a"}, {"zone": "süd", "cluster": ""})[at],
            }


def assignments() -> Iterator[Question]:
    """Assignments in all versions."""
    many = [[topic, partition] for topic in ("orders", "shop-by-id-repartition", "x") for partition in range(9)]
    for version in range(7, 12):
        yield {
            "ask": "assignment",
            "version": version,
            "common": version,
            "active": [],
            "standby": {},
            "hosts": [],
            "standbyHosts": [],
            "error": 4,
            "next": None,
        }
        yield {
            "ask": "assignment",
            "version": version,
            "common": 11,
            "active": ["0_0", "1_0", "0_1", "0_0", "31_5"],
            "standby": {"0_7": [["orders", 7]], "1_2": [["a", 2], ["b", 2]]},
            "hosts": [["east.example", 80, many], ["west-1", 65535, []]],
            "standbyHosts": [["east.example", 80, [["late", 0]]], ["west-1", 65535, many[3:7]]],
            "error": 0,
            "next": 1_700_000_000_000,
        }
        yield {
            "ask": "assignment",
            "version": version,
            "common": version,
            "active": ["2_0"],
            "standby": {},
            "hosts": [["h", 1, sorted([f"topic-{number}", number % 3] for number in range(30))]],
            "standbyHosts": [],
            "error": 0,
            "next": 0,
        }
