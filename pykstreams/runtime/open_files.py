"""How many files, connections among them, a process may have open.

Systems set a low limit, mostly 1024, which each process may raise up to a second one. A store on disk has some eight
files open from the beginning, and more as it grows, so that would be the limit of some 120 stores.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

log = logging.getLogger(__name__)

_WHERE_UNLIMITED: Final = 10_240
"""What macOS takes at most, although it says that there is no limit (``OPEN_MAX``)."""


def allow_open_files() -> None:
    """Raises the limit of this process as far as it may, as the JVM does for Kafka Streams (``MaxFDLimit``)."""
    if sys.platform == "win32":  # it has no such limit
        return
    import resource

    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WHERE_UNLIMITED if most == resource.RLIM_INFINITY else most
    if limit == resource.RLIM_INFINITY or limit >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    except (OSError, ValueError) as error:
        log.info("no more than %d files can be open in this process: %s", limit, error)
