"""Records what Kafka Streams does with cases, by the Java oracle beside this file."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SCRIPT = Path(__file__).parent / "oracle" / "oracle.sh"


class OracleError(Exception):
    """The oracle cannot run here, or could not record the cases."""


def record(paths: Sequence[Path]) -> str:
    """Fills in ``expect`` of the case files and folders, in place; gives what the oracle printed.

    A case that ends in an error is recorded like any other. ``OracleError`` when Java or Maven is missing, or
    when the oracle could not start.
    """
    tools = ("bash", "java", "javac")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise OracleError(
            f"the oracle needs {' and '.join(missing)} on the PATH; install a JDK 17 or newer"
            " (and Maven for the first run)"
        )
    done = subprocess.run(
        [str(SCRIPT), *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1) or "cases," not in done.stdout:
        raise OracleError(f"the oracle ended with exit code {done.returncode}:\n{done.stderr}{done.stdout}".rstrip())
    return done.stdout
