"""The tests of ``docs/guides/testing.md`` pass, in a run of pytest as a user starts it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_test_of_the_page_passes(tmp_path: Path) -> None:
    script = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
    (tmp_path / "test_shop.py").write_text(script, encoding="utf-8")

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    cases = len(re.findall(r"^def test_", script, re.MULTILINE)) + 1  # one of them runs twice
    assert f"{cases} passed" in ran.stdout, ran.stdout
