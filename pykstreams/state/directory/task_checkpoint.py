"""The checkpoint of a task: how far its stores are in their changelogs, to be read without opening them.

The file is JSON, and lies among the stores, so that it goes where they go (``<task>/rocksdb/@checkpoint``)::

    {"version": 1, "offsets": {"<store>": <next offset of its changelog>}}

No store can have that name. Kafka Streams keeps such a file for stores as well as for assignors; here stores know their
own offsets, and the file is for assignors only: without it state is as good, but nobody is told of it.

Invariant: a store stands for the offset that the file says, or for a later one. One whose folder is gone counts for
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_STORES: Final = "rocksdb"
_NAME: Final = "@checkpoint"
_VERSION: Final = 1


def read_checkpoint(task_dir: Path) -> dict[str, int]:
    """The offsets of the stores that are there; none where the file cannot be read."""
    stores = task_dir / _STORES
    try:
        found = json.loads((stores / _NAME).read_text(encoding="utf-8"))
        if found["version"] != _VERSION:
            return {}
        return {name: int(offset) for name, offset in found["offsets"].items() if (stores / name).is_dir()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_checkpoint(task_dir: Path, offsets: Mapping[str, int]) -> None:
    """Replaces the file as a whole, if there is a store on disk; ``OSError``: it is as it was."""
    stores = task_dir / _STORES
    if not stores.is_dir():
        return
    beside = stores / f"{_NAME}.new"
    beside.write_text(json.dumps({"version": _VERSION, "offsets": dict(offsets)}), encoding="utf-8")
    beside.replace(stores / _NAME)
