"""``pykstreams run --reload`` as a process, whose script cannot run and is edited."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

DEADLINE_S = 60.0
ROOT = Path(__file__).parents[4]


@pytest.mark.slow
def test_an_edited_module_is_loaded_anew_after_an_error_and_a_signal_ends_all(tmp_path: Path) -> None:
    part, script = tmp_path / "part.py", tmp_path / "app.py"
    part.write_text("raise RuntimeError('the first text')")
    script.write_text("import part")
    command = [sys.executable, "-m", "pykstreams", "run", str(script), "--application-id", "app"]
    process = subprocess.Popen(
        [*command, "--bootstrap-servers", "127.0.0.1:1", "--reload"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    watchdog = threading.Timer(DEADLINE_S, process.kill)
    watchdog.start()
    seen = []
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            seen.append(line.strip())
            if "started anew with the next change" in line and "the second" not in "".join(seen):
                part.write_text("raise RuntimeError('the second text, which is longer')")
            elif "started anew with the next change" in line:
                process.send_signal(signal.SIGTERM)
    watchdog.cancel()

    assert "RuntimeError: the first text" in seen
    assert "RuntimeError: the second text, which is longer" in seen
    assert process.returncode == 0
