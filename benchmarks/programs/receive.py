"""Reads what comes out, committed records only, and tells how late it is.

    python -m benchmarks.programs.receive brokers=... topic=... partitions=... count=...

A line ``first`` says that a record has come. When ``count`` records with a time have come, a line with their latencies
in microseconds follows, in the order of the times that the records were due.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, TopicPartition

from benchmarks.programs.schedule import time_in

FIRST, LATENCIES = "first", "latencies"


def main() -> None:
    """Runs until all records have come."""
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    count = int(given["count"])
    consumer = Consumer(
        {
            "bootstrap.servers": given["brokers"],
            "group.id": "receive",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(given["topic"], number, 0) for number in range(int(given["partitions"]))])
    seen: list[tuple[int, int]] = []
    begun = False
    while len(seen) < count:
        messages = consumer.consume(2000, 0.001)
        now = time.time_ns()
        for message in messages:
            value = message.value()
            if message.error() is None and isinstance(value, bytes):
                due = time_in(value)
                if due:
                    seen.append((due, now - due))
                elif not begun:
                    begun = True
                    print(FIRST, flush=True)
    consumer.close()
    print(LATENCIES, *(late // 1000 for _, late in sorted(seen)), flush=True)


if __name__ == "__main__":
    main()
