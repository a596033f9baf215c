"""Asks for keys of a store over HTTP, at a schedule, until nobody answers any more.

    python -m benchmarks.programs.ask port=... store=... rate=... keys=... connections=...

The schedule begins when the application is ready. A question is due at its time, whoever is late: latency is taken
from there. At the end two lines tell how many answers of each status there were, and their latencies in microseconds
in the order of the times they were due; refusals at the end are those of a worker that stops, and are left out.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from benchmarks.programs.schedule import SECOND_NS, Schedule
from benchmarks.topics.payloads import customer

STATUSES, LATENCIES = "statuses", "latencies"

REFUSED: Final = 500
"""From this status on."""

_READY_S: Final = 120.0
_LAST: Final = 1 << 60
"""More questions than there is time for."""


async def main() -> None:
    """Runs until the server is gone."""
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    port, keys = int(given["port"]), random.Random(7)
    await asyncio.wait_for(_ready(port), _READY_S)
    schedule = Schedule(time.time_ns(), int(given["rate"]), _LAST)
    numbers, answers = itertools.count(), dict[int, tuple[int, int]]()

    def targets() -> Iterator[bytes]:
        while True:
            yield b"/stores/%s/keys/%s" % (given["store"].encode(), customer(keys.randrange(int(given["keys"]))))

    asked = targets()
    await asyncio.gather(*(_ask(port, schedule, numbers, asked, answers) for _ in range(int(given["connections"]))))
    last = max((number for number, (status, _) in answers.items() if status < REFUSED), default=-1)
    counted = [answer for number, answer in sorted(answers.items()) if number <= last]
    statuses = Counter(status for status, _ in counted)
    print(STATUSES, *(f"{status}={count}" for status, count in sorted(statuses.items())), flush=True)
    print(LATENCIES, *(late for _, late in counted), flush=True)


async def _ready(port: int) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            status = await _asked(reader, writer, b"/health/ready")
            writer.close()
            if status == 200:
                return
        except (OSError, EOFError):
            pass
        await asyncio.sleep(0.05)


async def _ask(
    port: int,
    schedule: Schedule,
    numbers: Iterator[int],
    targets: Iterator[bytes],
    answers: dict[int, tuple[int, int]],
) -> None:
    """Asks what is due next over a connection of its own, until the server closes it; notes status and latency."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for number in numbers:
            due = schedule.time_of(number)
            await asyncio.sleep(max(0, due - time.time_ns()) / SECOND_NS)
            status = await _asked(reader, writer, next(targets))
            answers[number] = (status, (time.time_ns() - due) // 1000)
    except (OSError, EOFError):
        pass
    finally:
        writer.close()


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: bytes) -> int:
    """The status of the answer to a question."""
    writer.write(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head.split()[1])


if __name__ == "__main__":
    asyncio.run(main())
