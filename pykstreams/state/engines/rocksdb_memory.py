"""The memory that all RocksDBs of a process share: cached blocks, and the write buffers of every store.

Without a limit these are two amounts. With ``rocksdb.memory.bytes`` they are one: write buffers take their bytes from
the block cache, which gives way, and the indexes and filters of files, which otherwise lie beside it, are in it, too
([decision 0029](docs/decisions/0029-one-limit-for-the-memory-of-stores.md)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from rocksdict import Cache, WriteBufferManager

BLOCK_BYTES: Final = 4096
BLOCK_CACHE_BYTES: Final = 50 << 20
WRITE_BUFFER_BYTES: Final = 16 << 20
ARENA_BYTES: Final = 16 << 10
"""How much a write buffer takes at a time, and so at least: otherwise an eighth of its size, up to 1 MB, and hundreds
of stores with a row each would be beyond the limit, and be flushed at each commit."""
ALL_WRITE_BUFFERS_BYTES: Final = 256 << 20  # five stores with all their write buffers full stay below it

_LEAST_WRITE_BUFFER_BYTES: Final = 1 << 20
_SHARE_OF_ONE_BUFFER: Final = 16
_SHARE_OF_ALL_BUFFERS: Final = 2
_SHARE_TO_WAIT_AT: Final = 0.75


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """The memory that stores share.

    :param write_buffer_bytes: the size of one write buffer.
    :param limit_bytes: the limit for everything; ``None``: blocks and write buffers have limits of their own.
    """

    blocks: Cache
    write_buffers: WriteBufferManager
    write_buffer_bytes: int
    limit_bytes: int | None

    @property
    def is_limited(self) -> bool:
        """Whether everything is to be within the block cache."""
        return self.limit_bytes is not None

    @property
    def is_short(self) -> bool:
        """Whether flushes on their threads do not keep up, so that who writes is to flush first."""
        limit = self.limit_bytes
        return limit is not None and self.write_buffers.get_usage() > limit * _SHARE_TO_WAIT_AT


@cache
def engine_memory(limit_bytes: int | None) -> EngineMemory:
    """Makes the memory for stores with one limit, the same for all that ask for this limit.

    The block cache has no order of use, so that a block is found without a lock: a get takes a sixth less than with an
    LRU. Near the limit of the write buffers the store that is written to is flushed, however little its own buffer has.
    Nobody waits for that in RocksDB, where one would wait for ever while the disk is full; see ``is_short``.
    """
    if limit_bytes is None:
        blocks = Cache.new_hyper_clock_cache(BLOCK_CACHE_BYTES, BLOCK_BYTES)
        return EngineMemory(blocks, WriteBufferManager(ALL_WRITE_BUFFERS_BYTES, False), WRITE_BUFFER_BYTES, None)
    blocks = Cache.new_hyper_clock_cache(limit_bytes, BLOCK_BYTES)
    buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
        limit_bytes // _SHARE_OF_ALL_BUFFERS, False, blocks
    )
    one = max(_LEAST_WRITE_BUFFER_BYTES, min(WRITE_BUFFER_BYTES, limit_bytes // _SHARE_OF_ONE_BUFFER))
    return EngineMemory(blocks, buffers, one, limit_bytes)
