"""How much room there is on the disk of a folder, and when that is enough to go on after it was full."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

_WANTED_BYTES: Final = 64 << 20
_WANTED_SHARE: Final = 20  # of a small disk: its 20th part


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """The room on a disk, in bytes.

    :param free: what a process without special rights can still write.
    :param wanted: how much must be free for a task to go on, so that it does not stop again at once.
    """

    free: int
    wanted: int

    @property
    def is_enough(self) -> bool:
        """Whether it is worth going on."""
        return self.free >= self.wanted


MeasureRoom: TypeAlias = Callable[[str], DiskRoom]


def room_of(folder: str) -> DiskRoom:
    """Measures the room on the disk of a folder; of one that cannot be asked there is none.

    A folder that was deleted, or never made for want of room, will be on the disk of the nearest one above it.
    """
    path = Path(folder).absolute()
    for there in (path, *path.parents):
        try:
            disk = shutil.disk_usage(there)
        except FileNotFoundError:
            continue
        except OSError:
            break
        return DiskRoom(disk.free, min(_WANTED_BYTES, disk.total // _WANTED_SHARE))
    return DiskRoom(0, _WANTED_BYTES)


def is_full(error: OSError) -> bool:
    """Whether an error of the operating system is about a disk, or a quota, that is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
