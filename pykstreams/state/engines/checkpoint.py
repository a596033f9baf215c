"""The offset record kept inside each store, written in the same batch as the rows it stands for.

Layout, big-endian::

    version (1 byte, = 1) | changelog offset (8 bytes, signed)

Which record the offset names, the last one contained or the next one, is up to the runtime, which gives and reads it.
"""

from __future__ import annotations

import struct
from typing import Final

from pykstreams.core.errors import StoreEngineError

VERSION: Final = 1
_RECORD = struct.Struct(">Bq")


def encode_offset(offset: int) -> bytes:
    """Writes an offset record.

    >>> encode_offset(3).hex()
    '010000000000000003'
    """
    return _RECORD.pack(VERSION, offset)


def decode_offset(record: bytes, where: str) -> int:
    """Reads an offset record; ``where`` completes "the offset record of ..." in the error for anything else."""
    if len(record) != _RECORD.size or record[0] != VERSION:
        raise StoreEngineError(
            f"the offset record of {where} is {record.hex()!r}; expected {_RECORD.size} bytes of version {VERSION}. "
            "A newer release may have written it: use that release, or delete the folder to restore the store "
            "from its changelog"
        )
    return int(_RECORD.unpack(record)[1])
