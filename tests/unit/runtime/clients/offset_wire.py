"""Committed offsets at the byte, by requests that are written here: a witness that no client library has touched."""

from __future__ import annotations

import socket
import struct


def fetch_metadata(address: str, group: str, topic: str, partition: int) -> bytes:
    """The metadata that the group has committed for a partition (``OffsetFetch``, version 1)."""
    body = _text(group) + struct.pack(">i", 1) + _text(topic) + struct.pack(">ii", 1, partition)
    answer = _ask(address, 9, 1, body)
    at = 4 + 2 + len(topic) + 4 + 4 + 8  # topics, the topic's name, partitions, number, offset
    (length,) = struct.unpack_from(">h", answer, at)
    metadata = answer[at + 2 : at + 2 + length]
    assert struct.unpack_from(">h", answer, at + 2 + length) == (0,), answer
    return metadata


def commit_metadata(address: str, group: str, topic: str, partition: int, offset: int, metadata: bytes) -> None:
    """Commits as one who is no member of the group (``OffsetCommit``, version 2)."""
    body = _text(group) + struct.pack(">i", -1) + _text("") + struct.pack(">qi", -1, 1)
    body += _text(topic) + struct.pack(">iiqh", 1, partition, offset, len(metadata)) + metadata
    answer = _ask(address, 8, 2, body)
    assert answer.endswith(struct.pack(">ih", partition, 0)), answer


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def _ask(address: str, request: int, version: int, body: bytes) -> bytes:
    host, _, port = address.rpartition(":")
    message = struct.pack(">hhi", request, version, 1) + _text("witness") + body
    with socket.create_connection((host, int(port)), 10) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", answers.read(4))
        return answers.read(size)[4:]
