"""The pictures of ``docs/guides/tables-and-time.md``: what they show is what topologies did in the test driver.

``python -m docs.pictures.tables_and_time`` writes them; look at them before they are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from docs.pictures.timelines import Bar, Chip, Lane, Link, Look, Timeline
from pykstreams import Consumed, KStream, KTable, Materialized, Serdes, Stores, StreamsBuilder, Topology
from pykstreams.state import ResultOrder
from pykstreams.testing import TopologyTestDriver

FOLDER = Path(__file__).parent

_MINUTE = 60_000
_RETENTION = 60
_TEXT = Serdes.string()
_SETTINGS = {"application.id": "pictures", "default.key.serde": _TEXT, "default.value.serde": _TEXT}

Input = tuple[str, int, str, str]
"""(topic, minute, key, value)"""
Table = KTable[str, str]


def stream_time() -> Timeline:
    records = [(1, "free"), (5, "pro"), (3, "trial"), (7, "max"), (4, "team")]
    highest = [max(time for time, _ in records[: i + 1]) for i in range(len(records))]
    lanes = [Lane(f"{_NTH[i]} record", [_record(time, text, highest[i])]) for i, (time, text) in enumerate(records)]
    return Timeline(
        "Five records in the order in which they came. Stream time is the highest timestamp so far, and never goes "
        "back.",
        lanes,
        last=10,
        now=("stream time", highest),
    )


def validity() -> Timeline:
    inputs = [("plans", 1, "ann", "free"), ("plans", 5, "ann", "pro"), ("plans", 3, "ann", "trial")]
    titles = ("free, of 1, came", "then pro, of 5", "then trial, of 3: late")
    lanes = []
    for i, title in enumerate(titles):
        rows = _histories(_one_table, inputs[: i + 1], "plans")
        new = inputs[i][3]
        late = i == 2
        lanes.append(Lane(title, [_with_look(row, "late") if late and row.text == new else row for row in rows]))
    return Timeline(
        "The rows of one key after each record. The late one gets the time between those before and after it.",
        lanes,
        last=8,
    )


def retention() -> Timeline:
    inputs = [
        ("plans", 10, "ann", "free"),
        ("plans", 25, "ann", "pro"),
        ("plans", 20, "bob", "free"),
        ("plans", 75, "bob", "pro"),
        ("plans", 100, "eve", "free"),
    ]
    late = [("plans", 55, "bob", "late"), ("plans", 30, "bob", "later")]
    lanes = []
    for key in ("ann", "bob"):
        rows = _histories(_one_table, inputs, "plans", key)
        known = {row.text for row in rows}
        gone = [(time, value) for _, time, of, value in inputs if of == key and value not in known]
        first = min(row.start for row in rows)
        lanes.append(Lane(key, [*(Bar(time, first, value, "expired") for time, value in gone), *rows]))
    after = {row.text for row in _histories(_one_table, [*inputs, *late], "plans", "bob")}
    lanes.append(
        Lane(
            "late records of bob",
            [
                Chip(time, value, "record" if value in after else "dropped", "put" if value in after else "not put")
                for _, time, _, value in late
            ],
        )
    )
    newest = max(time for _, time, _, _ in inputs)
    return Timeline(
        "Stream time is 100, the retention 60. A row that was replaced before 40 is gone; one that still holds stays "
        "however old it is. A late record of 55 is put, one of 30 is not.",
        lanes,
        last=120,
        step=20,
        band=(newest - _RETENTION, newest, "history retention, and grace"),
        now=("stream time", [newest] * len(lanes)),
    )


def one_key_moves_time_on() -> Timeline:
    inputs = [("plans", 10, "ann", "free"), ("plans", 100, "bob", "pro"), ("plans", 30, "ann", "pro")]
    kept = {(row.start, row.text) for row in _histories(_one_table, inputs, "plans", "ann")}
    lost = (30, "pro") not in kept
    lanes = [
        Lane("1st record: ann", [Chip(10, "free")]),
        Lane("2nd record: bob", [Chip(100, "pro")]),
        Lane("3rd record: ann", [Chip(30, "pro", "dropped" if lost else "record", "not put" if lost else "put")]),
    ]
    return Timeline(
        "A record of bob moves stream time to 100. The next record of ann has the time 30, which is too late by then, "
        "although ann has no newer row.",
        lanes,
        last=120,
        step=20,
        band=(40, 100, "after the 2nd record"),
        now=("stream time", [10, 100, 100]),
    )


def stream_table_join() -> Timeline:
    plans = [("plans", 1, "ann", "free"), ("plans", 5, "ann", "pro")]
    clicks = [("clicks", 3, "ann", "/a"), ("clicks", 7, "ann", "/b")]

    def joined(builder: StreamsBuilder) -> None:
        _joined_stream(builder, versioned=True)

    def joined_with_newest(builder: StreamsBuilder) -> None:
        _joined_stream(builder, versioned=False)

    lanes = [
        Lane("clicks", [Chip(time, page) for _, time, _, page in clicks]),
        Lane("rows of plans", _histories(_one_table, plans, "plans")),
        Lane("joined, versioned", [Chip(time, text, "joined") for time, text in _outputs(joined, plans + clicks)]),
        Lane(
            "joined, plain",
            [
                Chip(time, text, "joined" if (time, text) in _outputs(joined, plans + clicks) else "wrong")
                for time, text in _outputs(joined_with_newest, plans + clicks)
            ],
        ),
    ]
    return Timeline(
        "Clicks that came after both rows of the table. With a versioned table each finds the row of its own time, "
        "with a plain one the row that came last.",
        lanes,
        last=9,
        links=[Link(0, time, 1, time) for _, time, _, _ in clicks],
    )


def complete_history() -> Timeline:
    def of(complete: bool) -> Callable[[StreamsBuilder], None]:
        def build(builder: StreamsBuilder) -> None:
            plans, cities = _versioned(builder, "plans"), _versioned(builder, "cities")
            plans.join(cities, _both, materialized=_history("joined"), complete_history=complete)

        return build

    inputs = [
        ("plans", 1, "ann", "free"),
        ("cities", 2, "ann", "Rome"),
        ("plans", 8, "ann", "pro"),
        ("plans", 4, "ann", "trial"),
        ("cities", 6, "ann", "Oslo"),
    ]
    right = [_with_look(row, "joined") for row in _histories(of(True), inputs, "joined")]
    given = _histories(of(False), inputs, "joined")
    lanes = [
        Lane("plans", _late(_histories(of(True), inputs, "plans"), "trial")),
        Lane("cities", _histories(of(True), inputs, "cities")),
        Lane("join", [_with_look(row, "joined" if _with_look(row, "joined") in right else "wrong") for row in given]),
        Lane("complete_history", right),
    ]
    return Timeline(
        "Two tables, one with a row that came late, and their join. By default an older result stays as it was; with "
        "complete_history each is right.",
        lanes,
        last=11,
    )


def reordering() -> Timeline:
    times = [1, 5, 3, 8, 10, 4, 16]
    grace = 5

    def build(builder: StreamsBuilder) -> None:
        builder.table("plans", reorder_grace=timedelta(minutes=grace)).to_stream().to("out")

    came: list[Chip] = []
    left: list[Chip] = []
    links: list[Link] = []
    with TopologyTestDriver(_topology(build), _SETTINGS) as driver:
        topic = driver.create_input_topic("plans", _TEXT, _TEXT)
        for place, time in enumerate(times, start=1):
            topic.pipe_input("ann", str(time), time * _MINUTE)
            for i, (_, value) in enumerate(_results(driver)):
                at = place + i * 0.5
                left.append(Chip(at, value, "joined"))
                links.append(Link(0, times.index(int(value)) + 1, 2, at))
            is_late = time < max(times[:place]) - grace
            came.append(Chip(place, str(time), "dropped" if is_late else "record", "late" if is_late else ""))
    came[-1] = Chip(len(times), str(times[-1]), "record", "waits")
    return Timeline(
        "Records of 1, 5, 3, 8, 10, 4 and 16 with a grace of 5. They leave in the order of time; that of 4 comes after "
        "one of 10 and is dropped; that of 16 waits.",
        [Lane("record of time", came), Lane("", []), Lane("is put into the table", left)],
        last=9,
        axis="order of arrival",
        links=links,
    )


def reordering_topology() -> str:
    builder = StreamsBuilder(_SETTINGS)
    consumed: Consumed[str, str] = Consumed(name="plans")
    builder.table("plans", consumed, materialized=_history("plan-history"), reorder_grace=timedelta(minutes=5))
    return builder.build().describe().to_svg()


_NTH = ("1st", "2nd", "3rd", "4th", "5th")


def _record(time: int, text: str, highest: int) -> Chip:
    return Chip(time, text) if time == highest else Chip(time, text, "late", "out of order")


def _late(rows: Iterable[Bar], text: str) -> list[Bar]:
    return [_with_look(row, "late") if row.text == text else row for row in rows]


def _with_look(row: Bar, look: Look) -> Bar:
    return Bar(row.start, row.end, row.text, look)


def _both(first: str, second: str) -> str:
    return f"{first} {second}"


def _history(name: str) -> Materialized[str, str]:
    return Materialized(Stores.persistent_versioned_key_value_store(name, timedelta(minutes=_RETENTION)))


def _versioned(builder: StreamsBuilder, name: str) -> Table:
    return builder.table(name, materialized=_history(name))


def _one_table(builder: StreamsBuilder) -> None:
    _versioned(builder, "plans")


def _joined_stream(builder: StreamsBuilder, *, versioned: bool) -> None:
    plans = _versioned(builder, "plans") if versioned else builder.table("plans")
    clicks: KStream[str, str] = builder.stream("clicks")
    clicks.join(plans, _both).to("out")


def _topology(build: Callable[[StreamsBuilder], None]) -> Topology:
    builder = StreamsBuilder(_SETTINGS)
    build(builder)
    return builder.build()


def _histories(
    build: Callable[[StreamsBuilder], None], inputs: Sequence[Input], store: str, key: str = "ann"
) -> list[Bar]:
    """The rows of a key in a versioned store after these records, in order of time."""
    with TopologyTestDriver(_topology(build), _SETTINGS) as driver:
        _pipe(driver, inputs)
        with driver.get_state_store(store).get(key, None, None, ResultOrder.ASCENDING) as rows:
            return [Bar(_minutes(row.timestamp), _minutes_or_none(row.valid_to), row.value) for row in rows]


def _minutes(time: int) -> float:
    return time / _MINUTE


def _minutes_or_none(time: int | None) -> float | None:
    return None if time is None else _minutes(time)


def _outputs(build: Callable[[StreamsBuilder], None], inputs: Sequence[Input]) -> list[tuple[float, str]]:
    with TopologyTestDriver(_topology(build), _SETTINGS) as driver:
        _pipe(driver, inputs)
        return _results(driver)


def _results(driver: TopologyTestDriver) -> list[tuple[float, str]]:
    """What came out since the last call: time and value."""
    records = driver.create_output_topic("out", _TEXT, _TEXT).read_records()
    return [(_minutes(record.timestamp or 0), record.value or "") for record in records]


def _pipe(driver: TopologyTestDriver, inputs: Iterable[Input]) -> None:
    for topic, minute, key, value in inputs:
        driver.create_input_topic(topic, _TEXT, _TEXT).pipe_input(key, value, minute * _MINUTE)


PICTURES: Mapping[str, Callable[[], str]] = {
    "stream-time.svg": lambda: stream_time().svg(),
    "validity.svg": lambda: validity().svg(),
    "retention.svg": lambda: retention().svg(),
    "one-key.svg": lambda: one_key_moves_time_on().svg(),
    "stream-table-join.svg": lambda: stream_table_join().svg(),
    "complete-history.svg": lambda: complete_history().svg(),
    "reordering.svg": lambda: reordering().svg(),
    "reordering-topology.svg": reordering_topology,
}
"""What draws each file."""


def main() -> None:
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
