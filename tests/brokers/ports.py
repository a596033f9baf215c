"""Ports of which a test is sure: nobody who asks here gets one twice, in whichever process."""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Final

AMONG: Final = range(20_000, 32_000)
"""Below the range from which the kernel serves outgoing connections, so that none of these takes one."""

_kept: Final[dict[int, socket.socket]] = {}


def free_ports(count: int, among: range = AMONG) -> list[int]:
    """Returns ports on which nobody listens, kept until this process ends; ``OSError`` where too few are left."""
    found: list[int] = []
    for port in _shuffled(among):
        if len(found) == count:
            break
        if _keep(port):
            found.append(port)
    if len(found) < count:
        raise OSError(f"{count} ports were asked for, and {_shown(among)} have {len(found)} left")
    return found


def free_ports_in_a_row(count: int, among: range = AMONG) -> int:
    """Returns the first of such ports that follow each other, as the workers of one command need them."""
    for first in _shuffled(among[: len(among) - count + 1]):
        row: list[int] = []
        for port in range(first, first + count):
            if not _keep(port):
                break
            row.append(port)
        if len(row) == count:
            return first
        for port in row:
            _kept.pop(port).close()
    raise OSError(f"{count} ports in a row were asked for, and {_shown(among)} have none left")


def _shuffled(ports: range) -> list[int]:
    return random.Random().sample(ports, len(ports))  # not by the seed of a test, which is the same in every process


def _shown(ports: range) -> str:
    return f"{ports.start} to {ports.stop - 1}"


def _keep(port: int) -> bool:
    """Takes a port unless somebody has it.

    What listens is started later, often by another program, so that a free port may be drawn again in between. A
    socket of UDP at the same number says that it is given away: brokers and servers listen by TCP only, and the kernel
    closes it when the process ends, however it ends.
    """
    mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with contextlib.ExitStack() as undo:
        undo.callback(mark.close)
        with socket.socket() as probe:
            try:
                mark.bind(("127.0.0.1", port))
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
        undo.pop_all()
    _kept[port] = mark
    return True
