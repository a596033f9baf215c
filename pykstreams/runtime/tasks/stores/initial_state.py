"""The state that a task begins with, before its changelogs are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class InitialState:
    """The folder of a task, and how it is brought to the state that the task is to begin with: as it is by default."""

    folder: Path
    make_ready: Callable[[], None] = lambda: None
    """Brings the folder to that state; called before the stores are opened."""
    is_ready: Callable[[], bool] = lambda: True
    """Whether the folder has that state already, so that stores that are open may stay."""
