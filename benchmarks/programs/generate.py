"""Writes records at a schedule, whatever becomes of them.

python -m benchmarks.programs.generate brokers=... topic=... start_ns=... rate=... count=...
"""

from __future__ import annotations

import sys
import time
from typing import Final

from confluent_kafka import Producer

from benchmarks.programs.schedule import Schedule, key_of, value_at

_TICK_S: Final = 0.001
_PATIENCE_S: Final = 60


def main() -> int:
    """Returns the exit code: 1 when records could not be written."""
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    schedule = Schedule(int(given["start_ns"]), int(given["rate"]), int(given["count"]))
    producer = Producer(
        {
            "bootstrap.servers": given["brokers"],
            "partitioner": "murmur2_random",
            "linger.ms": 3,  # with less, requests of a few records each keep the broker busy
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    sent = 0
    while sent < schedule.count:
        due = schedule.due(time.time_ns())
        for number in range(sent, due):
            producer.produce(given["topic"], value_at(schedule.time_of(number)), key_of(number))
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(_TICK_S)
    return 1 if producer.flush(_PATIENCE_S) else 0


if __name__ == "__main__":
    sys.exit(main())
