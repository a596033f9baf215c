"""Values that stay in memory take what they are long, whatever buffer the serializer wrote them into."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

COUNT = 50_000


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")
@pytest.mark.parametrize(
    "keep",
    [
        "values = [PLAIN.pack(encode({'number': number, 'text': 'x' * 60}, ()), 5, ()) for number in range(count)]",
        "for number in range(count): write(b'key', encode({'number': number, 'text': 'x' * 60}, ()), 5, ())",
    ],
    ids=["row of a plain store", "record of a changelog that is held"],
)
def test_json_that_is_kept_takes_no_more_than_its_bytes(keep: str) -> None:
    script = dedent("""
        from pykstreams.core.ids import TaskId
        from pykstreams.runtime.tasks.held_changelogs import HeldChangelogs
        from pykstreams.serdes import JsonSerde
        from pykstreams.serdes.base import bind_serializer
        from pykstreams.state.encoding.layout import PLAIN

        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

        count, encode = int(sys.argv[1]), bind_serializer(JsonSerde(), "topic")
        held = HeldChangelogs()
        write = held.writer(TaskId(0, 0), "log", 0)
        before = resident()
        exec(sys.argv[2])
        print(resident() - before)
    """)
    command = [sys.executable, "-c", f"import resource, sys\n{script}", str(COUNT), keep]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert int(done.stdout) < COUNT * 1000  # each value has 84 bytes, and objects of Python around it
