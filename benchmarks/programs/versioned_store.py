"""Puts into and reads from versioned stores of pykstreams; ``VersionedStore.java`` does the same to Kafka Streams'.

Both are told ``name=value`` on the command line and write a line ``NAME OPERATIONS CPU_NS CHECK`` for each kind of
work: the CPU time of the process over the second half of the operations, and a sum over all results.

Invariant: the same arguments make the same operations in both, so the sums are equal.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from pykstreams import Serdes
from pykstreams.state import Stores, VersionedKeyValueStore
from pykstreams.testing import MockProcessorContext

RETENTION_MS: Final = 60 * 60 * 1000
START_MS: Final = 1_700_000_000_000
COMMIT_EVERY: Final = 10_000
VALUE_BYTES: Final = 100
VALUES: Final = 1009
LATE_ONE_IN: Final = 5

Put = tuple[str, bytes, int]


class Chance:
    """Numbers that both languages draw alike."""

    def __init__(self) -> None:
        self._state = 42

    def below(self, bound: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) & 0xFFFF_FFFF_FFFF_FFFF
        return (self._state >> 33) % bound


def main() -> None:
    job = dict(argument.split("=", 1) for argument in sys.argv[1:])
    keys, versions, reads = int(job["keys"]), int(job["versions"]), int(job["reads"])
    folder = Path(job["folder"])
    chance = Chance()
    values = [bytes(chance.below(256) for _ in range(VALUE_BYTES)) for _ in range(VALUES)]
    names = [f"key-{number:016d}" for number in range(keys)]

    puts = _puts(names, values, versions, chance, late=False)
    latest = [names[chance.below(keys)] for _ in range(reads)]
    asked = [(names[chance.below(keys)], START_MS + chance.below(RETENTION_MS)) for _ in range(reads)]
    late = _puts(names, values, versions, chance, late=True)
    gc.freeze()

    store = _opened("ordered", folder)
    _measure("put", puts, lambda part: _put(store, part))
    _measure("get", latest, lambda part: _get(store, part))
    _measure("get-as-of", asked, lambda part: _get_as_of(store, part))
    store.close()
    other = _opened("late", folder)
    _measure("put-late", late, lambda part: _put(other, part))
    other.close()


def _opened(name: str, folder: Path) -> VersionedKeyValueStore[str, bytes]:
    supplier = Stores.persistent_versioned_key_value_store(name, RETENTION_MS)
    builder = Stores.versioned_key_value_store_builder(supplier, Serdes.string(), Serdes.bytes(), logging=False)
    store = builder.build()
    store.init(MockProcessorContext(state_dir=folder).state_store_context)
    return store


def _puts(names: list[str], values: list[bytes], versions: int, chance: Chance, *, late: bool) -> list[Put]:
    """Each key so many times, in another order each time; times go up, but for those that are late."""
    total, puts = len(names) * versions, list[Put]()
    order = list(range(len(names)))
    for _ in range(versions):
        for at in range(len(order) - 1, 0, -1):
            other = chance.below(at + 1)
            order[at], order[other] = order[other], order[at]
        for key in order:
            now = len(puts) * RETENTION_MS // total
            if late and chance.below(LATE_ONE_IN) == 0:
                now = chance.below(now + 1)
            puts.append((names[key], values[len(puts) % VALUES], START_MS + now))
    return puts


def _measure(name: str, work: list[Any], run: Callable[[list[Any]], int]) -> None:
    half = len(work) // 2
    check = run(work[:half])
    began = time.process_time_ns()
    check += run(work[half:])
    spent = time.process_time_ns() - began
    os.write(1, f"{name} {len(work) - half} {spent} {check & 0xFFFF_FFFF_FFFF_FFFF}\n".encode())


def _put(store: VersionedKeyValueStore[str, bytes], puts: list[Put]) -> int:
    put, total = store.put, 0
    for start in range(0, len(puts), COMMIT_EVERY):
        for key, value, timestamp in puts[start : start + COMMIT_EVERY]:
            total += put(key, value, timestamp)
        store.commit(start)
    return total


def _get(store: VersionedKeyValueStore[str, bytes], keys: Iterable[str]) -> int:
    get, total = store.get, 0
    for key in keys:
        found = get(key)
        total += 1 if found is None else found.timestamp + found.value[0]
    return total


def _get_as_of(store: VersionedKeyValueStore[str, bytes], asked: Iterable[tuple[str, int]]) -> int:
    get, total = store.get, 0
    for key, as_of in asked:
        found = get(key, as_of)
        total += 1 if found is None else found.timestamp + found.value[0]
    return total


if __name__ == "__main__":
    main()
