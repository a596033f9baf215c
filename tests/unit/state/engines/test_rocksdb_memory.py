"""One limit for the memory of all stores on disk of a process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.engines.rocksdb_memory import WRITE_BUFFER_BYTES, engine_memory
from tests.unit.state.support import Context

LIMIT = 32 << 20
STORES = 12
BATCHES = 15
ROWS = 500
"""Of 1,000 bytes each: 90 MB together."""


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[list[RocksDbEngine]]:
    context = Context(tmp_path, {"rocksdb.memory.bytes": LIMIT})
    found = [RocksDbEngine(f"store-{number}") for number in range(STORES)]
    for engine in found:
        engine.open(context)
    yield found
    for engine in found:
        engine.close()


@pytest.mark.slow
def test_blocks_and_write_buffers_of_all_stores_stay_within_one_limit(engines: list[RocksDbEngine]) -> None:
    memory, numbers = engine_memory(LIMIT), random.Random(1)
    value = numbers.randbytes(1000)
    used = []
    for batch in range(BATCHES):
        for engine in engines:
            engine.write_batch([(numbers.randbytes(16), value) for _ in range(ROWS)], batch)
            used.append(memory.blocks.get_usage())
    for engine in engines:
        assert sum(1 for _ in engine.scan(None, None, False)) == BATCHES * ROWS
        used.append(memory.blocks.get_usage())

    assert LIMIT / 2 < max(used) <= LIMIT * 1.1


@pytest.mark.slow
def test_many_stores_with_few_rows_each_stay_within_the_limit_without_a_file_for_each_commit(tmp_path: Path) -> None:
    context, numbers = Context(tmp_path, {"rocksdb.memory.bytes": LIMIT}), random.Random(1)
    found = [RocksDbEngine(f"store-{number}") for number in range(5 * STORES)]
    used = []
    for engine in found:
        engine.open(context)
    for batch in range(2):
        for engine in found:
            engine.write_batch([(numbers.randbytes(16), b"row")], batch)
            used.append(engine_memory(LIMIT).blocks.get_usage())
    files = [*tmp_path.rglob("*.sst")]
    for engine in found:
        engine.close()

    assert (max(used) <= LIMIT, files) == (True, [])


def test_stores_with_one_limit_share_their_memory_and_others_have_their_own() -> None:
    assert engine_memory(LIMIT) is engine_memory(LIMIT)
    assert engine_memory(LIMIT) is not engine_memory(None)


@pytest.mark.parametrize(("limit", "buffer"), [(None, WRITE_BUFFER_BYTES), (16 << 20, 1 << 20), (1 << 30, 16 << 20)])
def test_write_buffers_are_small_enough_for_several_of_them_to_fit(limit: int | None, buffer: int) -> None:
    assert engine_memory(limit).write_buffer_bytes == buffer


def test_limit_in_which_no_store_would_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"rocksdb\.memory\.bytes"):
        StreamsConfig({"rocksdb.memory.bytes": 1000})
