"""A task with a sink in a database, in a process that can be killed between any two steps.

    python -m tests.databases.effect_once <url> <file for Kafka's offset> [<step> <number>]

It reads ``RECORDS`` records from the offset in the file on, each of which gives two rows, and commits now and then: by
writing the file. With a step it kills itself when it comes to that step for so many times.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, text

from pykstreams.core.ids import TopicPartition
from pykstreams.processors import FlatMapValues
from pykstreams.processors.sinks.sql_sink import SqlSink
from tests.unit.runtime.tasks.fakes import TaskBench, message, node, source

RECORDS = 40
STEPS = (
    "before the claim is committed",
    "claimed",
    "before the offset is moved",
    "offset moved",
    "rows written",
    "before the rows are committed",
    "rows committed",
    "settled",
    "offset in Kafka",
    "committed",
)
EXPECTED = sorted((offset, f"{offset}{part}") for offset in range(RECORDS) for part in "ab")
_COMMITS = {
    "claim": ("before the claim is committed", "claimed"),
    "write": ("before the rows are committed", "rows committed"),
}
_PLACE = TopicPartition("in", 0)


class Deaths:
    """Kills this process at a step."""

    def __init__(self, step: str | None, number: int) -> None:
        assert step is None or step in STEPS
        self._step = step
        self._left = number

    def at(self, step: str) -> None:
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def create_effects(engine: Engine) -> None:
    """Makes the table, which lets rows be there twice."""
    with engine.begin() as connection:
        connection.execute(text("create table effects (id integer, value varchar(20))"))


def effects(engine: Engine) -> list[tuple[int, str]]:
    """The rows that are there."""
    with engine.connect() as connection:
        return sorted((row.id, row.value) for row in connection.execute(text("select id, value from effects")))


def watched_engine(url: str, deaths: Deaths) -> Engine:
    engine = create_engine(url)
    doing = ["table"]

    def before(connection: Any, cursor: Any, statement: str, *_: object) -> None:
        if "SET next_offset" in statement:
            doing[0] = "write"
            deaths.at("before the offset is moved")
        elif "SET epoch" in statement:
            doing[0] = "claim"

    def after(connection: Any, cursor: Any, statement: str, *_: object) -> None:
        if "SET next_offset" in statement:
            deaths.at("offset moved")
        elif "insert into effects" in statement:
            deaths.at("rows written")

    event.listen(engine, "before_cursor_execute", before)
    event.listen(engine, "after_cursor_execute", after)
    commit = engine.dialect.do_commit

    def do_commit(connection: Any) -> None:
        before_it, after_it = _COMMITS.get(doing[0], ("", ""))
        deaths.at(before_it)
        commit(connection)
        deaths.at(after_it)

    vars(engine.dialect)["do_commit"] = do_commit  # the one way to see the end of a commit
    return engine


def halves(value: str) -> Iterable[str]:
    return f"{value}a", f"{value}b"


def run(url: str, kafka: Path, deaths: Deaths) -> None:
    sink: SqlSink[str, str] = SqlSink(
        lambda: watched_engine(url, deaths),
        "insert into effects values (:id, :value)",
        lambda key, value: {"id": int(value[:-1]), "value": value},
        batch_size=3,
    )
    bench = TaskBench(
        source("SOURCE", "in", children=("HALVES",)),
        node("HALVES", FlatMapValues(halves), "SINK"),
        node("SINK", sink),
        config={"retry.backoff.ms": 1},
    )
    begin = int(kafka.read_text()) if kafka.exists() else 0
    for first in range(begin, RECORDS, 5):
        bench.feed(*(message("in", offset, str(offset), offset) for offset in range(first, min(first + 5, RECORDS))))
        finish(bench)
        if first // 5 % 3 == 2 or first + 5 >= RECORDS:
            while not bench.task.settle():
                bench.wait_for(running=0)
            deaths.at("settled")
            offset, _ = bench.task.prepare_commit()[_PLACE]
            kafka.write_text(str(offset))
            deaths.at("offset in Kafka")
            bench.task.post_commit({})
            deaths.at("committed")
    bench.task.close()


def finish(bench: TaskBench) -> None:
    """Lets the task work until it has nothing left."""
    while bench.task.unfinished or bench.task.buffered:
        bench.wait_for(running=0)
        bench.task.process(1000)


if __name__ == "__main__":
    step = sys.argv[3] if len(sys.argv) > 3 else None
    run(sys.argv[1], Path(sys.argv[2]), Deaths(step, int(sys.argv[4]) if step else 0))
