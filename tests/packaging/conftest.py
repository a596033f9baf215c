"""What is released, built once for all tests of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.source_tree import copy_tree


@dataclass(frozen=True)
class Released:
    """The files of a release; the wheel is made from the source distribution, as installers make it."""

    sdist: Path
    wheel: Path


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    folder = tmp_path_factory.mktemp("released")
    source = tmp_path_factory.mktemp("source") / "tree"
    copy_tree(source)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Released(sdist, wheel)
