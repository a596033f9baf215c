"""A wheel that is installed, used from an empty folder as a newcomer does.

Here it is tried with the libraries of this environment; ``nox -s packages`` does it with each Python in an environment
of its own, and ``test_container.py`` in images without a compiler.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.conftest import Released

FIRST_STEPS = Path(__file__).with_name("first_steps.py")


@pytest.mark.slow
def test_first_steps_are_taken_with_the_wheel_alone(released: Released, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
    subprocess.run([*install, str(released.wheel)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}

    done = subprocess.run(
        [sys.executable, str(FIRST_STEPS)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(f" from {target}")
