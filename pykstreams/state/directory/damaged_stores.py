"""Damaged stores, and those with rows of another form, moved out of the way: ``<task>/<store>.damaged-<ms>``, of each
store the last one only.

They are kept for whoever looks for the cause, until their task's state is deleted or the next one is set aside; those
of global stores also when a worker deletes their state to read it anew.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from pykstreams.core.errors import ProcessorStateError

_STORES: Final = "rocksdb"
_DAMAGED: Final = ".damaged-"


def set_aside(task_dir: Path, store: str, now_ms: int) -> Path | None:
    """Moves the folder of a store that nobody has open; returns where it is, ``None`` if there was none.

    ``ProcessorStateError``: it is where it was.
    """
    found, target = task_dir / _STORES / store, task_dir / f"{store}{_DAMAGED}{now_ms}"
    try:
        if not found.exists():
            return None
        for former in task_dir.iterdir():
            if _store_of(former.name) == store:
                shutil.rmtree(former) if former.is_dir() else former.unlink()
        return found.rename(target)
    except OSError as error:
        raise ProcessorStateError(
            f"the damaged store in {str(found)!r} cannot be moved to {str(target)!r}: {error}; give the worker the "
            "right to write there, or delete the folder of the store"
        ) from error


def is_set_aside(path: Path) -> bool:
    """Whether a folder beside the stores is that of a damaged one."""
    return bool(_store_of(path.name))


def _store_of(name: str) -> str:
    """The store that a folder is of, if it is that of a damaged one; empty otherwise."""
    store, _, time = name.rpartition(_DAMAGED)
    return store if time.isdecimal() else ""
