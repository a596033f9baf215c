"""The offset record kept inside each store, written in the same batch as the rows it stands for.

Layout, big-endian::

    version (1 byte, = 1) | changelog offset (8 bytes, signed)

Which record the offset names, the last one contained or the next one, is up to the runtime, which gives and reads it.
"""

from __future__ import annotations

import struct
from typing import Final

from pykstreams.core.errors import DamagedStoreError
from pykstreams.state.engines.rocksdb_errors import EnginePlace

VERSION: Final = 1
_RECORD = struct.Struct(">Bq")


def encode_offset(offset: int) -> bytes:
    """Writes an offset record.

    >>> encode_offset(3).hex()
    '010000000000000003'
    """
    return _RECORD.pack(VERSION, offset)


def decode_offset(record: bytes, place: EnginePlace) -> int:
    """Reads an offset record; ``DamagedStoreError`` for anything else."""
    if len(record) != _RECORD.size or record[0] != VERSION:
        raise DamagedStoreError(
            f"the offset record of {place} is {record.hex()!r}; expected {_RECORD.size} bytes of version {VERSION}. "
            "A newer release may have written it: use that release, or delete the folder to restore the store "
            "from its changelog",
            store=place.store,
            task_id=place.task_id,
        )
    return int(_RECORD.unpack(record)[1])
