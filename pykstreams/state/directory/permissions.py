"""Permissions of the state directory: for its owner, and the group as far as ``allow.os.group.write.access`` says.

Kafka Streams sets ``rwxr-x---``, or ``rwxrwx---`` with that setting, on ``state.dir`` and the folder of the application
(``StateDirectory.configurePermissions``, 4.3.1, KIP-1230). Here rights are taken away from others and from the group
in the same way, but no right is given that the umask has kept back, unless by that setting; and a folder for
everybody's files, such as ``/tmp``, stays as it is.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path

log = logging.getLogger(__name__)


def restrict(folders: Iterable[Path], *, group_may_write: bool) -> None:
    """Sets the rights of folders; where that is refused, it is logged, and they stay as they are."""
    if os.name == "nt":  # rights are inherited there
        return
    for folder in folders:
        try:
            mode = stat.S_IMODE(folder.stat().st_mode)
            wanted = mode & ~stat.S_IRWXO
            wanted = wanted | stat.S_IRWXG if group_may_write else wanted & ~stat.S_IWGRP
            if wanted != mode and not mode & stat.S_ISVTX:
                folder.chmod(wanted)
        except OSError as error:
            log.warning(
                "the rights of %r stay as they are: %s; give the folder to the user of the worker, or others may read "
                "the state in it",
                str(folder),
                error,
            )
