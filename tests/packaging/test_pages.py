"""The pages and the README with the wheel alone: each block of code and each command, where no source is.

``tests/integration/test_quickstart_page.py`` does the same with the quickstart, in every run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import Released
from tests.packaging.source_tree import ROOT

PAGES = ["README.md", "docs", "examples", "mkdocs.yml"]
TESTS = ["tests", "pyproject.toml", "setup.cfg", "Makefile", "scripts/kafka", "docker-compose.yml"]
RUN = ["tests/docs/test_code.py", "tests/docs/test_types.py", "tests/integration/test_commands_of_pages.py"]


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_pages_hold_with_the_wheel_alone(released: Released, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    with zipfile.ZipFile(released.wheel) as wheel:
        wheel.extractall(folder)
    for name in (*PAGES, *TESTS):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    environment = {**os.environ, "PYTHONPATH": str(folder)}

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *RUN],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
