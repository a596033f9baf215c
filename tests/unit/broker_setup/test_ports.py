"""A port that was drawn belongs to one test, also before anything listens there."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.brokers.ports import free_ports, free_ports_in_a_row

ROOT = Path(__file__).parents[3]
FEW = range(19_000, 20_000)
"""Below those of other tests, and so few that some would be drawn twice if nobody took care."""

OTHER = f"""
import sys
from tests.brokers.ports import free_ports
print(*free_ports(int(sys.argv[1]), {FEW!r}), flush=True)
input()
"""


def other(count: int) -> subprocess.Popen[str]:
    """Another process that draws; it ends when its input does."""
    command = [sys.executable, "-c", OTHER, str(count)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def drawn(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(port) for port in process.stdout.readline().split()]


def test_no_two_processes_draw_the_same_port() -> None:
    with other(100) as process:
        theirs = drawn(process)
        ours = free_ports(100, FEW)
        process.communicate("\n", 60)
    assert len({*ours, *theirs}) == 200


def test_no_two_calls_draw_the_same_port() -> None:
    rows = [free_ports_in_a_row(4, FEW) for _ in range(10)]
    single = free_ports(60, FEW)
    assert len({*single, *(port for row in rows for port in range(row, row + 4))}) == 100


def test_the_ports_of_a_process_are_free_again_when_it_is_gone() -> None:
    for _ in range(5):
        with other(200) as process:
            assert len(drawn(process)) == 200
            process.kill()


def test_a_port_where_somebody_listens_is_not_drawn() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        taken = server.getsockname()[1]
        with pytest.raises(OSError, match=f"1 ports were asked for, and {taken} to {taken} have 0 left"):
            free_ports(1, range(taken, taken + 1))
        with pytest.raises(OSError, match=f"1 ports in a row were asked for, and {taken} to {taken} have none left"):
            free_ports_in_a_row(1, range(taken, taken + 1))
