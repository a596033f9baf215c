"""Hashes that agree with Kafka: murmur2 chooses partitions, murmur3 compares values in foreign-key joins; and FNV-1a,
by which some producers choose partitions.

``murmur2`` is the plain reference; the fast one belongs to the client library and is handed in by
``runtime.clients.partitioner``.
"""

from __future__ import annotations

import struct

import mmh3

_MASK = 0xFFFFFFFF
_MURMUR2_SEED = 0x9747B28C
_MURMUR2_FACTOR = 0x5BD1E995
_MURMUR3_SEED = 104729
_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193

_pack_hash = struct.Struct(">QQ").pack


def murmur2(data: bytes) -> int:
    """Returns the 32-bit hash of a key as a signed integer (``Utils.murmur2``, 4.3.1).

    >>> murmur2(b"21")
    -973932308
    """
    length = len(data)
    whole = length & ~3
    result = _MURMUR2_SEED ^ length
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        mixed = block * _MURMUR2_FACTOR & _MASK
        mixed = (mixed ^ mixed >> 24) * _MURMUR2_FACTOR & _MASK
        result = result * _MURMUR2_FACTOR & _MASK ^ mixed
    if whole < length:
        result = (result ^ int.from_bytes(data[whole:], "little")) * _MURMUR2_FACTOR & _MASK
    result = (result ^ result >> 13) * _MURMUR2_FACTOR & _MASK
    result ^= result >> 15
    return result - (1 << 32) if result >> 31 else result


def partition_for_key(key_bytes: bytes, number_of_partitions: int) -> int:
    """Returns the partition that Kafka's default partitioner chooses for a key.

    >>> partition_for_key(b"21", 12)
    0
    """
    return (murmur2(key_bytes) & 0x7FFFFFFF) % number_of_partitions


def fnv1a(data: bytes) -> int:
    """Returns the 32-bit FNV-1a hash without its sign, as librdkafka has it (``rd_fnv1a``).

    >>> fnv1a(b"21")
    1930258452
    """
    result = _FNV_OFFSET
    for byte in data:
        result = (result ^ byte) * _FNV_PRIME & _MASK
    return (1 << 32) - result if result >> 31 else result


def murmur3_128(data: bytes) -> bytes:
    """Returns the hash of foreign-key joins, two big-endian longs (``Murmur3.hash128``, 4.3.1).

    >>> len(murmur3_128(b"value"))
    16
    """
    return _pack_hash(*mmh3.hash64(data, _MURMUR3_SEED, signed=False))
