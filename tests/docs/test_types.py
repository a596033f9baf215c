"""The code of pages that readers copy into a project of their own passes mypy, strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Page

PAGES = [Page("docs/guides/testing.md")]


@pytest.mark.slow
@pytest.mark.xdist_group("type checkers")
@pytest.mark.parametrize("page", PAGES, ids=str)
def test_code_of_a_page_passes_mypy(page: Page, tmp_path: Path) -> None:
    module = tmp_path / "page.py"
    module.write_text("\n\n".join(block.text for block in page.code))

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", "setup.cfg", str(module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )

    assert done.stdout.startswith("Success"), done.stdout + done.stderr
