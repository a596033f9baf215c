"""The CPU time that benchmarks read."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.cpu import cpu_seconds_by_thread

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")


def test_threads_of_one_kind_are_one_sum_by_the_name_without_its_number() -> None:
    until = [threading.Event(), threading.Event()]

    def works(event: threading.Event, name: str) -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
        while not cpu_seconds_by_thread(os.getpid()).get("busy", 0.0):
            pass
        event.wait()

    threads = [threading.Thread(target=works, args=(event, f"busy#{at}")) for at, event in enumerate(until)]
    for thread in threads:
        thread.start()
    try:
        while not (found := cpu_seconds_by_thread(os.getpid())).get("busy", 0.0):
            pass
    finally:
        for event in until:
            event.set()
        for thread in threads:
            thread.join()

    assert not [name for name in found if name.startswith("busy#")]
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_a_process_that_has_ended_has_no_threads() -> None:
    assert cpu_seconds_by_thread(2**22 + 1) == {}
