"""What an import does to those who import: it warns of nothing, for warnings may be errors to them."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODULES = [
    "pykstreams.testing.pytest_plugin",  # loaded by every run of pytest beside an installed pykstreams
    "pykstreams.testing",
    "pykstreams.runtime.clients.coordinators.streams_coordinator",
    "pykstreams.runtime.clients.inspection.cluster_facts",
    "pykstreams.cli.topologies.check",
]


@pytest.mark.slow
def test_imports_warn_of_nothing() -> None:
    """``kafka-python`` reads its messages by functions that Python 3.11 and 3.12 call deprecated."""
    lines = "\n".join(f"import {name}" for name in MODULES)

    done = subprocess.run([sys.executable, "-W", "error", "-c", lines], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
