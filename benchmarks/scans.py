"""Compares the two ways to scan by prefix: ended by a bound, and with RocksDB's prefix seek (extractor, bloom filter).

python -m benchmarks.scans [--rounds 15] [--folder DIRECTORY]

Stores are those of foreign-key joins: keys of a foreign key of 8 bytes with its length in front and a primary key of 8
bytes, values of 40. Both ways look for the same keys in turn, now one first and now the other; figures are medians of
CPU time over the rounds, and the median of the rounds' ratios. An absent foreign key lies between two that are there.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Final

from rich.console import Console
from rich.table import Table

from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.interfaces.engine import prefix_end
from pykstreams.state.interfaces.store import StoreContext
from pykstreams.testing import MockProcessorContext

PREFIX_BYTES: Final = 4 + 8
_BATCH_ROWS: Final = 10_000
_SCANS: Final = 400


@dataclass(frozen=True, slots=True)
class Sample:
    """So many foreign keys with so many rows each."""

    title: str
    foreign_keys: int
    rows_each: int
    scans: int = _SCANS


SAMPLES: Final = (
    Sample("3 prefixes of 1000 rows", 3, 1000, scans=30),
    Sample("1 000 000 subscriptions, 10 a foreign key", 100_000, 10),
    Sample("1 000 000 subscriptions, 1000 a foreign key", 1000, 1000, scans=30),
)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scans", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="how often each way scans (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where the stores are made (default: one for temporary files)")
    arguments = parser.parse_args()
    console = Console()
    for sample in SAMPLES:
        folder = Path(mkdtemp(prefix="bench-scans-", dir=arguments.folder))
        try:
            console.print(_compared(sample, folder, arguments.rounds))
        finally:
            shutil.rmtree(folder)
    return 0


def _compared(sample: Sample, folder: Path, rounds: int) -> Table:
    engines = [RocksDbEngine("bounded"), RocksDbEngine("prefix", PREFIX_BYTES)]
    context = MockProcessorContext(state_dir=folder).state_store_context
    writing = [_filled(engine, sample, context) for engine in engines]
    drawn = Table(title=sample.title, title_justify="left")
    drawn.add_column("CPU us", no_wrap=True)
    for heading in ("bounded", "prefix seek", "prefix/bounded"):
        drawn.add_column(heading, justify="right")
    chance = random.Random(11)

    def present() -> bytes:
        return _prefix(2 * chance.randrange(sample.foreign_keys))

    def absent() -> bytes:
        return _prefix(2 * chance.randrange(sample.foreign_keys) + 1)

    def present_row() -> bytes:
        number = chance.randrange(sample.foreign_keys * sample.rows_each)
        return _key(number, sample)

    work: dict[str, tuple[Callable[[RocksDbEngine, bytes], object], Callable[[], bytes], int]] = {
        "scan of a prefix that is there": (_scan, present, sample.scans),
        "scan of one that is not": (_scan, absent, _SCANS),
        "get of a row": (RocksDbEngine.get, present_row, _SCANS),
    }
    _add(drawn, "write of a row, flushes apart", [[each] for each in writing])
    for title, (call, keys, count) in work.items():
        times: list[list[float]] = [[], []]
        for number in range(rounds):
            wanted = [keys() for _ in range(count)]
            for which in (0, 1) if number % 2 else (1, 0):
                times[which].append(_cpu_us(call, engines[which], wanted))
        _add(drawn, title, times)
    for engine in engines:
        engine.close()
    return drawn


def _filled(engine: RocksDbEngine, sample: Sample, context: StoreContext) -> float:
    """Writes all rows in a random order, as subscriptions come, and gives the CPU time of a row on this thread.

    The store is closed and opened again, so that all rows are in files.
    """
    order = list(range(sample.foreign_keys * sample.rows_each))
    random.Random(7).shuffle(order)
    value = b"v" * 40
    spent = 0.0
    engine.open(context)
    for start in range(0, len(order), _BATCH_ROWS):
        batch = [(_key(number, sample), value) for number in order[start : start + _BATCH_ROWS]]
        began = time.thread_time()
        engine.write_batch(batch, start)
        spent += time.thread_time() - began
    engine.close()
    engine.open(context)
    return spent / len(order) * 1e6


def _cpu_us(call: Callable[[RocksDbEngine, bytes], object], engine: RocksDbEngine, keys: list[bytes]) -> float:
    began = time.thread_time()
    for key in keys:
        call(engine, key)
    return (time.thread_time() - began) / len(keys) * 1e6


def _scan(engine: RocksDbEngine, prefix: bytes) -> None:
    for _ in engine.scan(prefix, prefix_end(prefix), False):
        pass


def _prefix(foreign_key: int) -> bytes:
    return b"\x00\x00\x00\x08" + foreign_key.to_bytes(8, "big")


def _key(number: int, sample: Sample) -> bytes:
    return _prefix(2 * (number % sample.foreign_keys)) + number.to_bytes(8, "big")


def _add(drawn: Table, title: str, times: list[list[float]]) -> None:
    bounded, prefix = times
    ratio = median(ours / theirs for ours, theirs in zip(prefix, bounded, strict=True))
    drawn.add_row(title, f"{median(bounded):.2f}", f"{median(prefix):.2f}", f"{ratio:.2f}")


if __name__ == "__main__":
    sys.exit(main())
