"""Checks of this machine: whether local state can be written, and whether it may vanish."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.state.directory.disk_room import MeasureRoom, room_of
from pykstreams.state.directory.state_directory import application_folder
from pykstreams.topology.plan import TopologyPlan


def disk_findings(plan: TopologyPlan, config: StreamsConfig, measure: MeasureRoom = room_of) -> Iterator[Finding]:
    """Yields what keeps stores from the disk; nothing for a topology without stores."""
    if not plan.global_stores and not any(part.stores for part in plan.subtopologies):
        return
    folder = Path(config.state_dir)
    wanted = application_folder(folder, config.application_id).absolute()
    there = next(path for path in (wanted, *wanted.parents) if os.path.exists(path))
    try:  # rights tell too little: of disks that are mounted for reading only, of /proc, and of root
        with tempfile.TemporaryDirectory(prefix="pykstreams-check-", dir=there):
            pass
    except OSError as error:
        yield Finding(
            Severity.ERROR,
            "disk",
            f"local state cannot be written: {str(there)!r} takes no folder ({error.strerror})",
            str(folder),
            "give the worker the right to write there, or set state.dir to a folder where it has",
        )
        return
    room = measure(str(there))
    if not room.is_enough:
        yield Finding(
            Severity.ERROR,
            "disk",
            f"the disk has {room.free} bytes left, and tasks with stores wait until there are {room.wanted}",
            str(folder),
            "make room there, or set state.dir to a folder on another disk",
        )
    if folder.absolute().is_relative_to(Path(tempfile.gettempdir()).absolute()):
        yield Finding(
            Severity.WARNING,
            "disk",
            "the system may clean up the folder of temporary files, and state would be restored from changelogs",
            str(folder),
            "set state.dir to a folder that lasts",
        )
