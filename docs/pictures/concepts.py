"""The pictures of ``docs/concepts/``: what they show is what topologies did, and what an assignor decided.

``python -m docs.pictures.concepts`` writes them; look at them before they are committed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from docs.pictures.boxes import Arrow, Box, Note, Panel, Picture, Route
from docs.pictures.timelines import Bar, Chip, Lane, Link, Look, Timeline
from pykstreams import JoinWindows, StreamsBuilder, TaskId, TimeWindows, Topology
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.membership.assignment.group import Client, Group, Task
from pykstreams.runtime.membership.assignment.high_availability import assign_high_availability
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.testing import TopologyTestDriver

FOLDER = Path(__file__).parent
REPARTITION, CHANGELOG = "shop-spent-repartition", "shop-spent-changelog"
"""The topics that the application of the quickstart makes."""
PARTITIONS: Final = 4

_MINUTE = 60_000
Input = tuple[str, int, str, str | None]
"""(topic, minute, key, value)"""


def table_of_changes() -> Timeline:
    """The customers of the shop, of whom ``ann`` moves once and then leaves."""
    records: list[Input] = [
        ("customers", 1, "ann", "Rome"),
        ("customers", 3, "bob", "Bonn"),
        ("customers", 6, "ann", "Oslo"),
        ("customers", 8, "ann", None),
    ]

    def build(builder: StreamsBuilder) -> None:
        builder.table("customers", str, str).to_stream().to("out")

    changes = _outputs(build, records)
    lanes = [
        Lane("stream of records", [Chip(time, f"{key}={value or 'null'}") for _, time, key, value in records]),
        *(Lane(f"table, row {key}", _rows(changes, key)) for key in ("ann", "bob")),
        Lane("stream of changes", [Chip(time, f"{key}={value or 'null'}", "joined") for time, key, value in changes]),
    ]
    links = [Link(0, time, 1 if key == "ann" else 2, time) for _, time, key, _ in records]
    return Timeline(
        "Four records of customers. Each replaces the row of its key in the table; the one with the value null "
        "deletes it. The changes of the table are a stream again.",
        lanes,
        last=10,
        links=links,
    )


def joins() -> Timeline:
    """Orders of ann joined with her payments, with the row of her city, and two tables joined."""
    records: list[Input] = [
        ("cities", 1, "ann", "Rome"),
        ("orders", 2, "ann", "tea"),
        ("payments", 4, "ann", "paid"),
        ("cities", 6, "ann", "Oslo"),
        ("orders", 8, "ann", "bun"),
    ]

    def streams(builder: StreamsBuilder) -> None:
        orders, payments = builder.stream("orders", str, str), builder.stream("payments", str, str)
        orders.join(payments, _both, windows=JoinWindows(timedelta(minutes=3))).to("out")

    def stream_and_table(builder: StreamsBuilder) -> None:
        builder.stream("orders", str, str).join(builder.table("cities", str, str), _both).to("out")

    def tables(builder: StreamsBuilder) -> None:
        builder.table("orders", str, str).join(builder.table("cities", str, str), _both).to_stream().to("out")

    def cities(builder: StreamsBuilder) -> None:
        builder.table("cities", str, str).to_stream().to("out")

    def of(build: Callable[[StreamsBuilder], None], topics: Sequence[str]) -> list[tuple[float, str, str | None]]:
        return _outputs(build, [record for record in records if record[0] in topics])

    lanes = [
        Lane("orders", [Chip(time, value or "") for topic, time, _, value in records if topic == "orders"]),
        Lane("payments", [Chip(time, value or "") for topic, time, _, value in records if topic == "payments"]),
        Lane("cities, a table", _rows(of(cities, ["cities"]), "ann")),
        Lane("orders with payments", _chips(of(streams, ["orders", "payments"]))),
        Lane("orders with cities", _chips(of(stream_and_table, ["orders", "cities"]))),
        Lane("last order with city", [_joined(row) for row in _rows(of(tables, ["orders", "cities"]), "ann")]),
    ]
    return Timeline(
        "Records of ann. A join of two streams gives a result when both records have come within three minutes; a join "
        "of a stream with a table one for each record of the stream; a join of two tables is a table.",
        lanes,
        last=10,
    )


def tasks() -> Picture:
    """Six orders on their way through both sub-topologies of the shop, each to the partition of its key."""
    orders = [("1", "ann"), ("2", "bob"), ("3", "ann"), ("4", "eve"), ("5", "bob"), ("6", "ann")]
    routes: Mapping[str, Route] = {"ann": "first", "bob": "second", "eve": "third"}
    panels = [
        Panel(10, 10, 136, 222, "orders"),
        Panel(178, 10, 124, 222, "Sub-topology 0"),
        Panel(396, 10, 176, 222, REPARTITION),
        Panel(604, 10, 146, 222, "Sub-topology 1"),
    ]
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    first: list[Box] = []
    between: list[Box] = []
    for partition in range(PARTITIONS):
        y = 42.0 + partition * 46
        numbers = [number for number, _ in orders if _partition_of(number) == partition]
        names = sorted({name for _, name in orders if _partition_of(name) == partition})
        source = Box(20, y, 116, 34, _with_keys(partition, numbers, "order"), "topic")
        task = Box(194, y, 92, 34, f"task {TaskId(0, partition)}", "task")
        inner = Box(406, y, 156, 34, _with_keys(partition, names), "internal")
        last = Box(614, y, 126, 34, f"task {TaskId(1, partition)}", "task", ["its part of spent"])
        boxes += [source, task, inner, last]
        arrows += [Arrow(source, task), Arrow(inner, last)]
        first.append(task)
        between.append(inner)
    for shift, name in zip((-4, 4, 0), routes, strict=True):
        starts = sorted({_partition_of(number) for number, of in orders if of == name})
        arrows += [Arrow(first[at], between[_partition_of(name)], route=routes[name], shift=shift) for at in starts]
    return Picture(
        "Four partitions of orders, a task of sub-topology 0 for each, the repartition topic with four partitions, and "
        "a task of sub-topology 1 for each of these. All orders of a customer come together in one partition.",
        760,
        260,
        panels,
        boxes,
        arrows,
        [Note(20, 250, "orders 1, 3 and 6 are of ann (orange), 2 and 5 of bob (green), 4 is of eve (blue)")],
    )


def workers() -> Picture:
    """The eight tasks of the shop shared out among one, two, three and nine workers."""
    panels: list[Panel] = []
    boxes: list[Box] = []
    notes: list[Note] = []
    y = 10.0
    for count in (1, 2, 3, 9):
        shares = assigned(count)
        gap, columns = 8.0, {1: 8, 2: 4, 3: 3, 9: 1}[count]
        rows = max(-(-len(share) // columns) for share in shares)
        width = (740 - gap * (count - 1)) / count
        height = 34 + rows * 32.0
        for number, share in enumerate(shares):
            x = 10 + number * (width + gap)
            panels.append(Panel(x, y, width, height, f"worker {number + 1}"))
            for at, task in enumerate(share):
                left = x + 8 + (at % columns) * (width - 16) / columns
                top = y + 30 + (at // columns) * 32
                boxes.append(
                    Box(left + 2, top, (width - 16) / columns - 4, 26, task, "store" if task[0] == "1" else "task")
                )
            if not share:
                boxes.append(Box(x + 10, y + 30, width - 20, 26, "idle", "idle"))
        y += height + 14
    notes.append(Note(14, y + 6, "green: tasks with state. A ninth worker has nothing to do: there are eight tasks."))
    return Picture(
        "The eight tasks of the shop on one worker, on two with four each, on three, and on nine, of which one has "
        "nothing to do.",
        760,
        y + 18,
        panels,
        boxes,
        (),
        notes,
    )


def state() -> Picture:
    """One task with its store, what it reads and writes, and its standby task."""
    source = Box(20, 62, 176, 34, f"{REPARTITION}-0", "internal")
    changelog = Box(20, 233, 176, 34, f"{CHANGELOG}-0", "internal")
    result = Box(20, 124, 176, 34, "spent-by-customer", "topic")
    step = Box(310, 62, 120, 34, "aggregate", "step")
    cache = Box(310, 124, 120, 34, "record cache", "store")
    writes = Box(295, 228, 150, 44, "not committed yet", "store", ["in memory"])
    disk = Box(590, 228, 130, 44, "RocksDB", "store", ["store spent, on disk"])
    copy = Box(590, 342, 130, 44, "RocksDB", "store", ["copy of spent"])
    standby = Box(310, 342, 120, 44, "standby task", "task", [str(TaskId(1, 0))])
    boxes = [source, changelog, result, step, cache, writes, disk, standby, copy]
    return Picture(
        "A task on a worker: the aggregate puts sums into the record cache, which hands on the newest of each key to "
        "the output topic, the changelog topic and the writes that wait in memory for the commit; the commit puts them "
        "into RocksDB. On another machine a standby task follows the changelog.",
        760,
        420,
        [
            Panel(8, 24, 200, 376, "Kafka"),
            Panel(278, 24, 474, 264, f"worker A: task {TaskId(1, 0)}"),
            Panel(278, 310, 474, 90, "worker B, on another machine"),
        ],
        boxes,
        [
            Arrow(source, step),
            Arrow(step, cache, "each sum", shift=-14),
            Arrow(cache, step, shift=-26),
            Arrow(cache, result),
            Arrow(cache, writes, "newest row of each key"),
            Arrow(writes, changelog),
            Arrow(writes, disk, "at the commit"),
            Arrow(changelog, standby, route="copied"),
            Arrow(standby, copy, route="copied"),
        ],
    )


def window_and_grace() -> Timeline:
    """Orders in a window of ten minutes with a grace of two: which count, and which are late."""
    minutes = [1, 7, 4, 11, 8, 12, 9]
    counted, late = _in_windows(minutes)
    highest = [max(minutes[: i + 1]) for i in range(len(minutes))]
    lanes = []
    for i, minute in enumerate(minutes):
        look: Look = "record" if minute == highest[i] else "late"
        note = "" if minute == highest[i] else "out of order, counts"
        if i in late:
            look, note = "dropped", "late: not counted"
        lanes.append(Lane(f"{_NTH[i]} order", [Chip(minute, f"{minute}", look, note)]))
    return Timeline(
        f"A window from 0 to 10 with a grace of 2. It takes records until stream time is 12, and counts {counted} "
        "orders. An order of 9 that comes after that is late.",
        lanes,
        last=16,
        step=2,
        axis="event time (minutes)",
        band=(0, 10, "window from 0 to 10"),
        now=("stream time", highest),
    )


def assigned(workers: int) -> list[list[str]]:
    """The tasks of the shop that each of so many workers has, once their state has come along."""
    given = [
        Task(
            TaskId(part, partition),
            frozenset({TopicPartition(REPARTITION if part else "orders", partition)}),
            frozenset({TopicPartition(CHANGELOG, partition)} if part else ()),
        )
        for part in range(2)
        for partition in range(PARTITIONS)
    ]
    lags = {task.id: 0 for task in given if task.stateful}
    ids = [ProcessId(uuid.UUID(int=number)) for number in range(1, workers + 1)]
    clients = [Client(process_id, {f"{process_id}": frozenset()}, lags) for process_id in ids]
    decided = assign_high_availability(Group(tuple(clients), tuple(given))).clients
    return [[str(task) for task in sorted(decided[process_id].active)] for process_id in ids]


_NTH: Final = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th")


def _with_keys(partition: int, keys: Sequence[str], noun: str = "") -> str:
    if not keys:
        return f"{partition}"
    before = f"{noun}{'s' if len(keys) > 1 else ''} " if noun else ""
    return f"{partition}: {before}{', '.join(keys)}"


def _partition_of(key: str) -> int:
    return partition_for_key(key.encode(), PARTITIONS)


def _both(first: str, second: str) -> str:
    return f"{first}, {second}"


def _chips(results: Iterable[tuple[float, str, str | None]]) -> list[Chip]:
    return [Chip(time, value or "null", "joined") for time, _, value in results]


def _joined(row: Bar) -> Bar:
    return Bar(row.start, row.end, row.text, "joined")


def _rows(changes: Iterable[tuple[float, str, str | None]], key: str) -> list[Bar]:
    """The rows that a key has had, each until the next change."""
    of_key = [(time, value) for time, name, value in changes if name == key]
    ends = [*(time for time, _ in of_key[1:]), None]
    return [Bar(time, end, value) for (time, value), end in zip(of_key, ends, strict=True) if value is not None]


def _topology(build: Callable[[StreamsBuilder], None]) -> Topology:
    builder = StreamsBuilder()
    build(builder)
    return builder.build()


def _outputs(build: Callable[[StreamsBuilder], None], records: Iterable[Input]) -> list[tuple[float, str, str | None]]:
    """What comes out of the topic ``out``: time, key and value."""
    with TopologyTestDriver(_topology(build)) as driver:
        for topic, minute, key, value in records:
            driver.create_input_topic(topic, str, str).pipe_input(key, value, minute * _MINUTE)
        found = driver.create_output_topic("out", str, str).read_records()
        return [((record.timestamp or 0) / _MINUTE, record.key or "", record.value) for record in found]


def _in_windows(minutes: Sequence[int]) -> tuple[int, set[int]]:
    """How many of these orders count in the first window, and the numbers of those that were late."""
    builder = StreamsBuilder()
    windows = TimeWindows(timedelta(minutes=10), grace=timedelta(minutes=2))
    builder.stream("orders", str, str).group_by_key().windowed_by(windows).count(
        materialized="counts", late_records_to="late"
    )
    with TopologyTestDriver(builder.build()) as driver:
        orders = driver.create_input_topic("orders", str, str)
        for number, minute in enumerate(minutes):
            orders.pipe_input("shop", str(number), minute * _MINUTE)
        late = driver.create_output_topic("late", str, str).read_values()
        counts = driver.get_window_store("counts")
        assert counts is not None
        with counts.fetch("shop", 0, 0) as rows:
            [(_, counted)] = rows
    return counted, {int(number or 0) for number in late}


PICTURES: Mapping[str, Callable[[], str]] = {
    "table-of-changes.svg": lambda: table_of_changes().svg(),
    "joins.svg": lambda: joins().svg(),
    "tasks.svg": lambda: tasks().svg(),
    "workers.svg": lambda: workers().svg(),
    "state.svg": lambda: state().svg(),
    "window-and-grace.svg": lambda: window_and_grace().svg(),
}
"""What draws each file."""


def main() -> None:
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
