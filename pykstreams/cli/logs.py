"""What the program writes to standard error while it runs: plain lines with time, worker and module."""

from __future__ import annotations

import logging
import sys


def configure_logging(level: str, worker: int | None) -> None:
    """Sends log records from a level on to standard error; ``worker`` is named in each line."""
    place = "" if worker is None else f" [worker {worker}]"
    logging.basicConfig(
        stream=sys.stderr,
        level=level.upper(),
        format=f"%(asctime)s %(levelname)-7s{place} %(name)s: %(message)s",
        force=True,
    )
