"""Deaths at a known place: what a worker reads kills it, however fast it is and whatever else the machine does."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def crash_once(mark: Path) -> None:
    """Ends this process as ``kill -9`` does, unless one has ended here before."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
