"""The program's log on standard error: plain lines with time, worker and module.

The level is for pykstreams and the user's code. Of other libraries warnings and errors are written, whatever the level.
"""

from __future__ import annotations

import logging
import sys

from pykstreams.core.user_frames import is_library


class OwnRecords(logging.Filter):
    """Lets records below a warning pass only if they are of pykstreams or of the user's code.

    :param package: the user's package, which may be installed among the libraries.
    """

    def __init__(self, package: str) -> None:
        super().__init__()
        self._packages = frozenset(("pykstreams", package))

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING or record.name.partition(".")[0] in self._packages:
            return True
        return not is_library(record.pathname)


def configure_logging(level: str, worker: int | None, topology: str) -> None:
    """Sends log records from a level on to standard error.

    :param worker: is named in each line.
    :param topology: how the user has named the topology.
    """
    place = "" if worker is None else f" [worker {worker}]"
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(OwnRecords(topology.partition(":")[0].partition(".")[0]))
    logging.basicConfig(
        handlers=[handler],
        level=level.upper(),
        format=f"%(asctime)s %(levelname)-7s{place} %(name)s: %(message)s",
        force=True,
    )
