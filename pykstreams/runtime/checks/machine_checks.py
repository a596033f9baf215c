"""Checks of this machine: whether local state can be written, and whether it may vanish."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.state.directory.disk_room import MeasureRoom, room_of
from pykstreams.topology.plan import TopologyPlan


def disk_findings(plan: TopologyPlan, config: StreamsConfig, measure: MeasureRoom = room_of) -> Iterator[Finding]:
    """Yields what keeps stores from the disk; nothing for a topology without stores."""
    if not plan.global_stores and not any(part.stores for part in plan.subtopologies):
        return
    folder = Path(config.state_dir)
    there = next((path for path in (folder, *folder.absolute().parents) if path.exists()), folder)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield Finding(
            Severity.ERROR,
            "disk",
            f"local state cannot be written: {str(there)!r} is no folder that this user may write",
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
