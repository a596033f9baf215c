"""The settings of the HTTP server of a worker, and the address it is bound to."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass, field
from typing import Final

from pykstreams.core.errors import ConfigError
from pykstreams.core.types import END_OF_TIME

LOOPBACK: Final = "127.0.0.1"

_MOST_DIGITS: Final = 15
"""Of a number of ms: more than any time since the epoch has."""

_ADDRESS: Final = re.compile(r"(?:(\[[0-9a-fA-F:.%]+\]|[^\[\]:\s]*):)?([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How an application is served; limits are of one process.

    :param token: who asks for stores must send it (``Authorization: Bearer``); ``None`` lets everybody.
    :param stale: how old an answer may be when the owner of a partition is away: ``refuse``, ``allow``, or ms.
    :param default_rows, max_rows: rows of an answer, when the request does not say, and at most.
    :param max_answer_bytes: of the rows of an answer, which ends before a row that would pass it, and goes on at its
        cursor.
    :param readers: threads that read stores, so many at the same time; as many tell of the application itself.
    :param waiting: reads that may wait for such a thread; more are refused with 503.
    :param timeout_ms: how long an answer may take.
    :param health_timeout_ms: how long a worker may take to say how it is, where a process of its own serves it.
    :param peer_timeout_ms: how long another instance may take.
    :param client_timeout_ms: how long a client may take to send its request, and to take the answer.
    :param max_connections: connections at the same time; more are closed.
    :param max_body_bytes: of a request, whose body nobody reads.
    :param peer_ca_file: what the certificates of other instances are checked with; ``None``: the system's.
    """

    token: str | None = field(default=None, repr=False)
    stale: str = "refuse"
    default_rows: int = 100
    max_rows: int = 1000
    max_answer_bytes: int = 8 << 20
    readers: int = 2
    waiting: int = 64
    timeout_ms: int = 15_000
    health_timeout_ms: int = 2_000
    peer_timeout_ms: int = 3_000
    client_timeout_ms: int = 10_000
    max_connections: int = 512
    max_body_bytes: int = 64 << 10
    peer_tls: bool = False
    peer_ca_file: str | None = None

    def __post_init__(self) -> None:
        stale_ms(self.stale)


def stale_ms(text: str) -> int | None:
    """How old an answer may be: 0 for ``refuse``, ``None`` for ``allow``; ``ConfigError`` for what is neither, nor ms.

    >>> stale_ms("refuse"), stale_ms("allow"), stale_ms("1500")
    (0, None, 1500)
    """
    if text in ("refuse", "allow"):
        return 0 if text == "refuse" else None
    if not text.isdecimal() or not text.isascii() or len(text) > _MOST_DIGITS:
        raise ConfigError(f"stale is {text!r}; write refuse, allow, or how many ms an answer may be old at most")
    return int(text)


def whole_ms(text: str) -> int | None:
    """A time in ms since the epoch, the last one there is for a later one; ``None`` for what is no whole number.

    >>> whole_ms("1500"), whole_ms("2026-01-01"), whole_ms("9" * 5000)
    (1500, None, None)
    """
    if not text.isdecimal() or not text.isascii():
        return None
    try:
        return min(int(text), END_OF_TIME)
    except ValueError:  # of more digits than Python reads
        return None


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads ``host:port``, ``:port`` or ``port``; without a host it is the loopback interface.

        >>> Address.parse(":8080")
        Address(host='127.0.0.1', port=8080)
        >>> Address.parse("[::1]:0").host
        '::1'
        """
        found = _ADDRESS.fullmatch(text.strip())
        if found is None or int(found[2]) > 65535:
            raise ConfigError(
                f"the address {text!r} is no host:port; write 127.0.0.1:8080, or 0.0.0.0:8080 for all interfaces"
            )
        return cls((found[1] or LOOPBACK).strip("[]"), int(found[2]))

    def of_worker(self, number: int | None) -> Address:
        """The address of a worker process, whose numbers begin at 1: the next port for each; 0 stays 0."""
        if number is None or not self.port:
            return self
        if self.port + number - 1 > 65535:
            raise ConfigError(f"worker {number} has no port: {self.port} + {number - 1} is beyond 65535; begin lower")
        return Address(self.host, self.port + number - 1)

    @property
    def is_any(self) -> bool:
        """Whether it stands for all interfaces."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def published(self, port: int) -> str:
        """The address for ``application.server``; with the name of the machine where it listens everywhere."""
        host = socket.gethostname() if self.is_any else self.host
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
