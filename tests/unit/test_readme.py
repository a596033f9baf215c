"""The Python of the README runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_taste_and_its_test_run() -> None:
    names: dict[str, Any] = {"__name__": "readme"}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)

    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)

    assert len(blocks) == 2
    assert names["counts"].is_empty
