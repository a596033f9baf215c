"""Foreign-key joins over a broker, one of three workers killed and started again: the final tables are the joins.

20 000 left rows refer to 2 000 right rows, and both sides change at random. An inner and a left join of the same tables
run in one application, so that one pass serves both. ``FOREIGN_KEY_JOIN_ROWS=200000`` makes it as many left rows, and a
tenth of that right ones; that takes a minute and a half.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from confluent_kafka import murmur2

from tests.brokers.brokers import create_topic
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

LEFT_ROWS = int(os.environ.get("FOREIGN_KEY_JOIN_ROWS", "20000"))
RIGHT_ROWS = LEFT_ROWS // 10
CHANGED_ROWS = min(LEFT_ROWS, 20_000)
"""Left rows that are changed, each more than once."""

CHANGES = 40_000
SLICES = 8
"""In as many parts are the changes sent; the worker dies of an order between two of them."""

CRASH = "|crash"
"""An order of nobody."""

WORKERS = ("one", "two", "three")
PARTITIONS = 4
SUBTOPOLOGIES = 2
"""One has the left table and resolves answers, one has the right table and the subscriptions."""

INPUTS = ("orders", "customers")
MESSAGES = (
    "inner-subscription-registration-topic",
    "left-subscription-registration-topic",
    "inner-subscription-response-topic",
    "left-subscription-response-topic",
)
SEED = 20_260_105

SCRIPT = '''
    """Joins orders with the customer that each begins with."""

    from pathlib import Path

    from pykstreams import Consumed, Produced, Serdes, StreamsBuilder, TableJoined
    from tests.integration.crashes import crash_once

    text = Serdes.string()

    def customer(order):
        if order == "|crash":
            crash_once(Path(__file__).parent / "crashed")
        return order.partition("|")[0] or None

    def joined(order, customer):
        return f"{order}+{customer}"

    def build(config):
        prefix = config["app.prefix"]
        builder = StreamsBuilder()
        orders, customers = (
            builder.table(f"{prefix}-{name}", Consumed(key_serde=text, value_serde=text))
            for name in ("orders", "customers")
        )
        for name, join in (("inner", orders.join), ("left", orders.left_join)):
            rows = join(customers, joined, foreign_key_extractor=customer, table_joined=TableJoined(name=name))
            rows.to_stream().to(f"{prefix}-{name}", Produced(key_serde=text, value_serde=text))
        return builder.build()
'''

Row: TypeAlias = tuple[str, str, str | None]
"""(topic, key, value)"""

Table: TypeAlias = dict[str, str]


class Drawing:
    """Rows drawn by one seed, and the tables that they make."""

    def __init__(self) -> None:
        self.chance = random.Random(SEED)
        self.orders: Table = {}
        self.customers: Table = {}

    def load(self) -> Iterator[Row]:
        """All rows once; orders of customers that come later are among them, and of some that never do."""
        rows = ["orders"] * LEFT_ROWS + ["customers"] * RIGHT_ROWS
        self.chance.shuffle(rows)
        count = {"orders": 0, "customers": 0}
        for topic in rows:
            key = str(count[topic])
            count[topic] += 1
            yield self._put(topic, key, self._order(0) if topic == "orders" else "name 0")

    def changes(self, count: int, first: int) -> Iterator[Row]:
        for number in range(first, first + count):
            if self.chance.random() < 0.15:
                name = None if self.chance.random() < 0.3 else f"name {number}"
                yield self._put("customers", str(self.chance.randrange(RIGHT_ROWS)), name)
            else:
                key = str(self.chance.randrange(CHANGED_ROWS))
                yield self._put("orders", key, self._changed(self.orders.get(key), number))

    def crash(self, partition: int) -> Row:
        """The order that kills the worker, in a partition of that one's."""
        keys = (f"crash-{number}" for number in itertools.count())
        key = next(key for key in keys if murmur2(key.encode(), PARTITIONS) == partition)
        return self._put("orders", key, CRASH)

    def joins(self) -> dict[str, Table]:
        """The relational joins."""
        inner: Table = {}
        left: Table = {}
        for key, order in self.orders.items():
            name = self.customers.get(order.partition("|")[0])
            left[key] = f"{order}+{name}"
            if name is not None:
                inner[key] = left[key]
        return {"inner": inner, "left": left}

    def _changed(self, order: str | None, number: int) -> str | None:
        """Deleted, without customer, with the same one, or with another; equal values come back, too."""
        kind = self.chance.random()
        if kind < 0.2:
            return None
        if kind < 0.35:
            return f"|{number % 3}"
        if kind < 0.6 and order is not None:
            return f"{order.partition('|')[0]}|{number % 3}"
        return self._order(number % 3)

    def _order(self, number: int) -> str:
        return f"{self.chance.randrange(RIGHT_ROWS + RIGHT_ROWS // 10)}|{number}"

    def _put(self, topic: str, key: str, value: str | None) -> Row:
        table = self.orders if topic == "orders" else self.customers
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
        return topic, key, value


class Joining(Workers):
    """The application; everything is read when no message is left, and none has come while that was looked at."""

    def worker_of_both_sides(self) -> str:
        """There is one: eight tasks, four of them of each side, are spread evenly over three workers."""
        return next(worker for worker, tasks in self.running().items() if {task[0] for task in tasks} == {"0", "1"})

    def wait_until_everything_is_read(self) -> None:
        self.wait("everything is read", self._is_read)

    def _is_read(self) -> bool:
        before = self.ends(MESSAGES)
        return not any(self.unread((*INPUTS, *MESSAGES)).values()) and self.ends(MESSAGES) == before


@pytest.fixture
def make_joining(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., Joining]]:
    made: list[Joining] = []

    def make(*settings: str) -> Joining:
        app = Joining(bootstrap_servers, make_name("joining"), tmp_path, SCRIPT, PARTITIONS, settings)
        for name in (*INPUTS, "inner", "left"):
            create_topic(bootstrap_servers, app.topic(name), partitions=PARTITIONS)
        made.append(app)
        return app

    yield make
    for app in made:
        app.end()


def test_final_tables_equal_the_relational_joins_although_a_worker_is_killed(
    make_joining: Callable[..., Joining],
) -> None:
    app = make_joining("session.timeout.ms=3000", "heartbeat.interval.ms=1000")
    app.start_all(WORKERS, SUBTOPOLOGIES * PARTITIONS)
    victim = app.worker_of_both_sides()
    partition = min(int(task[2:]) for task in app.running()[victim] if task.startswith("0_"))
    rows = Drawing()
    app.send(rows.load())
    app.wait("most orders are read", lambda: app.unread(["orders"])["orders"] < LEFT_ROWS / 10)

    each = CHANGES // SLICES
    for number in range(SLICES):
        app.send(rows.changes(each, number * each + 1))
        if number == SLICES // 2:
            app.send([rows.crash(partition)])
    assert victim == app.wait_for_crash()
    assert app.unread(["orders"])["orders"] > 0
    app.start(victim)
    app.wait_until_everything_is_read()
    for worker in WORKERS:
        app.stop(worker)

    found = app.last_values(("inner", "left"))
    for name, expected in rows.joins().items():
        table = {key: value.decode() for key, value in found[name].items() if value is not None}
        stale = {key: (row, expected.get(key)) for key, row in table.items() if row != expected.get(key)}
        missing = {key: row for key, row in expected.items() if key not in table}
        assert (name, len(stale), stale) == (name, 0, {})
        assert (name, len(missing), missing) == (name, 0, {})
