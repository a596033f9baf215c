"""What a newcomer does with an installed pykstreams, from an empty folder: a project is written, tested and run.

    python first_steps.py          with the Python into which pykstreams and pytest are installed

It needs the standard library besides, and no file of the repository; whatever fails ends it with what was said.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

PATIENCE_S = 600.0


def first_steps(folder: Path) -> None:
    """Takes them in an empty folder."""
    says(folder, "init", "shop-totals")
    project = folder / "shop-totals"
    tested = output_of([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], project)
    assert "1 passed" in tested, tested
    assert "spent-by-customer" in says(project, "describe", "shop_totals.py")
    runs_until_stopped(project)


def says(folder: Path, *arguments: str) -> str:
    """Runs a command of pykstreams, which must go well."""
    return output_of([sys.executable, "-m", "pykstreams", *arguments], folder)


def output_of(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def runs_until_stopped(project: Path) -> None:
    """Starts the application on an embedded cluster, waits until it is ready, and stops it in order."""
    log = project / "run.log"
    command = [sys.executable, "-m", "pykstreams", "run", "shop_totals.py", "--embedded", "--http", "127.0.0.1:0"]
    with log.open("w") as file, subprocess.Popen(command, cwd=project, stdout=file, stderr=file) as process:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not is_ready(log.read_text()):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            process.terminate()
            assert process.wait(PATIENCE_S) == 0, log.read_text()
        finally:
            process.kill()


def is_ready(said: str) -> bool:
    """Whether the worker answers that it is, at the port that it has said."""
    port = re.search(r"HTTP at port (\d+)", said)
    if port is None:
        return False
    address = f"http://127.0.0.1:{port[1]}/health/ready"
    with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5) as answer:
        return bool(answer.status == 200)
    return False


def main() -> None:
    sys.path[:] = [place for place in sys.path if place not in ("", str(Path(__file__).parent))]
    import pykstreams

    with tempfile.TemporaryDirectory(prefix="first-steps-") as folder:
        first_steps(Path(folder))
    implementation = ".".join(str(part) for part in sys.version_info[:3])
    where = os.path.dirname(os.path.dirname(pykstreams.__file__))
    print(f"first steps taken with Python {implementation} and pykstreams {pykstreams.__version__} from {where}")


if __name__ == "__main__":
    main()
