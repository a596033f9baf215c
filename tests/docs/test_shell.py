"""The shell of pages: what it has started it can stop, however the tests themselves were started."""

from __future__ import annotations

from pathlib import Path

from tests.docs.shell import Shell

GOES_ON = """
import time
try:
    print("begun", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("stopped")
"""


def test_a_command_that_goes_on_is_stopped_as_by_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "goes_on.py").write_text(GOES_ON)
    running = Shell(tmp_path).start("python goes_on.py")
    try:
        running.wait_until(lambda text: "begun" in text)
        running.stop()
    finally:
        running.kill()

    assert running.text == "begun\nstopped\n"
