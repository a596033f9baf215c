"""The public names are what ``public_api.txt`` says; a change of them is seen in review.

``UPDATE_GOLDEN=1 pytest tests/golden/test_public_api.py`` writes the file anew.
"""

import importlib
import os
from pathlib import Path

PUBLIC = (
    "pykstreams",
    "pykstreams.assignment",
    "pykstreams.errors",
    "pykstreams.metrics",
    "pykstreams.query",
    "pykstreams.serdes",
    "pykstreams.state",
    "pykstreams.testing",
    "pykstreams.types",
)
LIST = Path(__file__).parent / "public_api.txt"


def test_public_names_are_those_of_the_list() -> None:
    found = [f"{module}.{name}" for module in PUBLIC for name in sorted(importlib.import_module(module).__all__)]
    if os.environ.get("UPDATE_GOLDEN") == "1":
        LIST.write_text("\n".join(found) + "\n")

    assert LIST.read_text().splitlines() == found


def test_every_public_name_exists() -> None:
    missing = [
        f"{module}.{name}"
        for module in map(importlib.import_module, PUBLIC)
        for name in module.__all__
        if not hasattr(module, name)
    ]

    assert missing == []
