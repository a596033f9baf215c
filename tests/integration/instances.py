"""An application with stores of every kind, as several instances that answer over HTTP, and what they must answer.

Each key gets its records one after the other, ``STEP_MS`` apart; a record's value says which one it is. So whatever is
in the stores follows from how many records of a key have been processed, and an answer can be judged by itself.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Message

from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process
from tests.process_tree import children

ROOT: Final = Path(__file__).parents[2]
PARTITIONS: Final = 4
PATIENCE_S: Final = 180.0
STEP_MS, WINDOW_MS, GAP_MS, DAY_MS = 20_000, 60_000, 30_000, 86_400_000

STORES: Final = ("latest", "history", "windows", "visits")

SCRIPT: Final = f"""
from pykstreams import Consumed, Grouped, Materialized, Serdes, SessionWindows, Stores, StreamsBuilder, TimeWindows

text = Serdes.string()
builder = StreamsBuilder()
orders = builder.stream({{topic!r}}, Consumed(key_serde=text, value_serde=text))
orders.to_table(materialized=Materialized("latest", key_serde=text, value_serde=text))
history = Stores.persistent_versioned_key_value_store("history", {DAY_MS})
orders.to_table(materialized=Materialized(history, key_serde=text, value_serde=text))
grouped = orders.group_by_key(Grouped(key_serde=text, value_serde=text))
windows, sessions = TimeWindows({WINDOW_MS}, grace={DAY_MS}), SessionWindows({GAP_MS}, grace={DAY_MS})
grouped.windowed_by(windows).reduce(lambda old, new: new, materialized=Materialized("windows"))
grouped.windowed_by(sessions).reduce(lambda old, new: new, materialized=Materialized("visits"))
"""


def get(port: int, target: str) -> tuple[int, Any]:
    """The status and the body of an answer; 0 where nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except OSError:
        return 0, None
    finally:
        connection.close()


def wait_until(condition: Callable[[], object], what: str, missing: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: {missing()}"
        time.sleep(0.1)


@dataclass
class Orders:
    """The records that were written, all of them acknowledged."""

    brokers: str
    topic: str
    keys: list[str]
    start_ms: int = field(default_factory=lambda: (int(time.time() * 1000) // WINDOW_MS - 60) * WINDOW_MS)
    places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """The partition and the offset of each record, by key."""

    def __post_init__(self) -> None:
        self._producer = producer_in_order(self.brokers, {"partitioner": "murmur2_random"})

    def write(self, keys: Iterable[str]) -> None:
        """Writes the next record of each of these keys."""

        def delivered(error: object, message: Message) -> None:
            assert error is None
            key, partition, offset = message.key(), message.partition(), message.offset()
            assert isinstance(key, bytes) and partition is not None and offset is not None
            self.places.setdefault(key.decode(), []).append((partition, offset))

        for key in keys:
            number = len(self.places.get(key, ()))
            self._producer.produce(
                self.topic,
                f"{key}#{number}",
                key=key,
                timestamp=self.start_ms + number * STEP_MS,
                on_delivery=delivered,
            )
            assert self._producer.flush(60) == 0

    def partition(self, key: str) -> int:
        return self.places[key][0][0]

    def up_to(self, key: str, offset: int) -> int:
        """How many records of a key there are up to an offset of its partition."""
        return sum(own <= offset for _, own in self.places[key])


@dataclass(frozen=True)
class Question:
    """A question about one key.

    :param told: what of the answer is compared.
    :param expected: makes that of the number of records that have been processed.
    """

    target: str
    told: Callable[[Any], object]
    expected: Callable[[int], object]


def questions(orders: Orders, key: str) -> list[Question]:
    """A question for each kind of store."""
    start = orders.start_ms

    def value(number: int) -> str:
        return f"{key}#{number}"

    def windows(count: int) -> list[tuple[int, str]]:
        newest = {(start + number * STEP_MS) // WINDOW_MS * WINDOW_MS: value(number) for number in range(count)}
        return sorted(newest.items())

    def versions(count: int) -> list[str]:
        return [value(number) for number in range(count)]

    return [
        Question(f"/stores/latest/keys/{key}", lambda body: body["value"], lambda count: value(count - 1)),
        Question(f"/stores/history/keys/{key}?as_of={start + STEP_MS}", lambda body: body["value"], lambda _: value(1)),
        Question(f"/stores/history/versions/{key}?limit=1000", _values, versions),
        Question(
            f"/stores/windows/windows/{key}?limit=1000",
            lambda body: [(row["window"]["start"], row["value"]) for row in body["rows"]],
            windows,
        ),
        Question(
            f"/stores/visits/sessions/{key}",
            lambda body: [(row["window"]["start"], row["window"]["end"], row["value"]) for row in body["rows"]],
            lambda count: [(start, start + (count - 1) * STEP_MS, value(count - 1))],
        ),
    ]


def _values(body: Any) -> list[str]:
    return [row["value"] for row in body["rows"]]


def whole_ranges(orders: Orders) -> list[Question]:
    """Questions that all partitions have to answer, when each key has equally many records."""

    def by_key(body: Any) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for row in body["rows"]:
            found.setdefault(row["key"], []).append(row["value"])
        return found

    def newest(keys: Iterable[str]) -> Callable[[int], object]:
        return lambda count: {key: [f"{key}#{count - 1}"] for key in keys}

    def in_windows(count: int) -> object:
        last = [number for number in range(count) if number + 1 == count or (number + 1) * STEP_MS % WINDOW_MS == 0]
        return {key: [f"{key}#{number}" for number in last] for key in orders.keys}

    some = [key for key in orders.keys if orders.keys[2] <= key <= orders.keys[5]]
    return [
        Question("/stores/latest/range?limit=1000", by_key, newest(orders.keys)),
        Question(f"/stores/latest/range?from={some[0]}&to={some[-1]}", by_key, newest(some)),
        Question("/stores/latest/prefix?prefix=key-&limit=1000", by_key, newest(orders.keys)),
        Question("/stores/windows/windows?limit=1000", by_key, in_windows),
        Question("/stores/visits/sessions?limit=1000", by_key, newest(orders.keys)),
    ]


@dataclass
class Instances:
    """The instances of the application; each has a standby task of every task of the others'."""

    brokers: str
    name: str
    topic: str
    folder: Path
    settings: dict[str, object] = field(default_factory=dict)
    ports: dict[str, list[int]] = field(default_factory=dict)
    """The ports of the processes of each instance."""
    processes: dict[str, Process] = field(default_factory=dict)

    def start(self, instance: str, port: int, workers: int = 1) -> None:
        script = self.folder / "orders.py"
        script.write_text(SCRIPT.format(topic=self.topic))
        settings = {
            "num.standby.replicas": 1,
            "commit.interval.ms": 200,
            "consumer.auto.offset.reset": "earliest",
            **self.settings,
        }
        self.processes[instance] = Process(
            [
                *(sys.executable, "-m", "pykstreams", "run", str(script)),
                *("--bootstrap-servers", self.brokers, "--application-id", self.name, "--http", f":{port}"),
                *("--state-dir", str(self.folder / instance), "--workers", str(workers)),
                *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.ports[instance] = list(range(port, port + workers))

    def kill(self, instance: str) -> None:
        """Ends an instance and the processes below it as ``kill -9`` does."""
        process = self.processes.pop(instance)
        for pid in (process.pid, *children(process.pid)):
            os.kill(pid, signal.SIGKILL)
        process.wait()

    def kill_worker(self, port: int) -> None:
        """Ends one process of an instance of several as ``kill -9`` does; its supervisor starts it again."""
        found = [pid for process in self.processes.values() for pid in children(process.pid) if _listens(pid, port)]
        assert len(found) == 1
        os.kill(found[0], signal.SIGKILL)

    def end(self) -> None:
        """Ends workers in order: those of a supervisor that is killed go on for a while, and miss their broker."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(PATIENCE_S)
            finally:
                process.kill()
                process.wait()

    @property
    def running(self) -> list[int]:
        """The ports at which somebody answers."""
        return [port for instance in self.processes for port in self.ports[instance]]

    def wait_until_settled(self, orders: Orders) -> None:
        """Waits until each process has tasks that run, and every task a copy elsewhere, as all of them say.

        All of it holds at one moment, so that no task is on its way from one process to another.
        """
        everybody = {f"127.0.0.1:{port}" for port in self.running}

        def spread() -> bool:
            for port in self.running:
                status, body = get(port, "/stores/latest")
                if status != 200 or {one["active"] for one in body["partitions"]} != everybody:
                    return False
                if any(not one["standbys"] or one["active"] in one["standbys"] for one in body["partitions"]):
                    return False
            return self.all_are_active(orders, self.running)

        wait_until(
            spread,
            "not all have tasks and copies",
            lambda: [get(port, "/stores/latest") for port in self.running],
        )

    def all_are_active(self, orders: Orders, ports: Iterable[int]) -> bool:
        """Whether processes have every key answered by the task itself."""
        return all(get(port, f"/stores/latest/keys/{key}")[0] == 200 for port in ports for key in orders.keys)

    def owners(self, port: int) -> dict[int, str]:
        """The address of the owner of each partition, as a process says."""
        return {one["partition"]: one["active"] for one in get(port, "/stores/latest")[1]["partitions"]}

    def wait_until_current(self, orders: Orders) -> None:
        """Waits until all that a process has, copies included, has all records."""

        def behind() -> Iterator[tuple[int, str, object]]:
            for port in self.running:
                for question, count in self._asked(port, orders):
                    target = with_query(question.target, "scope=local&stale=allow")
                    status, body = get(port, target)
                    if status != 200 or question.told(body) != question.expected(count):
                        yield port, target, body

        wait_until(lambda: next(behind(), None) is None, "not all copies are current", lambda: next(behind(), None))

    def _asked(self, port: int, orders: Orders) -> Iterator[tuple[Question, int]]:
        """Questions about the keys that a process has, with how many records they have."""
        here = {one["partition"] for one in get(port, "/stores/latest")[1]["here"]}
        for key in orders.keys:
            if orders.partition(key) in here:
                for question in questions(orders, key):
                    yield question, len(orders.places[key])


def listening(pid: int) -> set[str]:
    """The addresses at which a process and those below it listen (proc_net(5)); by IPv6 as the kernel writes them."""
    inodes, found = set(), set()
    for one in (pid, *children(pid)):
        for path in Path(f"/proc/{one}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                inodes.add(os.readlink(path))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                address, port = words[1].split(":")
                host = socket.inet_ntoa(bytes.fromhex(address)[::-1]) if table == "tcp" else address
                found.add(f"{host}:{int(port, 16)}")
    return found


def _listens(pid: int, port: int) -> bool:
    return f"127.0.0.1:{port}" in listening(pid)


def with_query(target: str, more: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}{more}"


def sources(body: Any) -> Iterator[dict[str, Any]]:
    """Where an answer is from."""
    told = body["from"]
    yield from told if isinstance(told, list) else [told]
