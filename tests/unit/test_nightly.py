"""The marker ``nightly``, by runs of pytest over a module of two tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = """
import pytest

@pytest.mark.nightly
def test_long(): pass

@pytest.mark.slow
def test_short(): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "options, selected",
    [
        ([], ["test_short"]),
        (["-m", "slow"], ["test_short"]),
        (["-m", "not slow"], []),
        (["-m", "nightly"], ["test_long"]),
        (["-m", "nightly or slow"], ["test_long", "test_short"]),
        (["-k", "long"], []),
    ],
)
def test_nightly_tests_run_only_where_the_expression_of_markers_names_them(
    tmp_path: Path, options: list[str], selected: list[str]
) -> None:
    (tmp_path / "test_two.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    nightly\n    slow\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.nightly", "--collect-only", "-q", *options]

    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )

    assert selected == re.findall(r"::(\w+)", done.stdout), done.stdout + done.stderr
