"""The code of ``docs/guides/own-assignor.md`` runs, and its assertions hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pykstreams import StreamsConfig
from pykstreams.runtime.membership.assignors.setting import user_assignor

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "own-assignor.md"


def test_assignor_of_the_page_puts_state_on_large_instances() -> None:
    names: dict[str, Any] = {"__name__": "own_assignor"}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(blocks) == 2
    assert isinstance(user_assignor(StreamsConfig(task_assignor_class=names["StateOnLarge"])), names["StateOnLarge"])
