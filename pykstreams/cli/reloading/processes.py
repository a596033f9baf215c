"""The processes of an application that is started anew whenever a file has changed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from pykstreams.cli.reloading.reloader import Reloader
from pykstreams.cli.reloading.watched_files import WatchedFiles
from pykstreams.cli.workers.supervisor import Process
from pykstreams.cli.workers.worker_process import WorkerProcesses
from pykstreams.core.clock import SystemClock


def run_reloading(topology: str, arguments: Sequence[str]) -> int:
    """Runs ``pykstreams run`` with the arguments, again and again, until a signal comes; returns its exit code."""
    with tempfile.TemporaryDirectory(prefix="pykstreams-reload-") as folder:
        report = Path(folder) / "files.json"
        processes = WorkerProcesses([topology, *arguments, "--reloaded", str(report)], numbered=False)
        processes.catch_signals()
        files = WatchedFiles(report, topology)

        def launch(number: int) -> Process:
            files.begin()
            return processes.launch(number)

        reloader = Reloader(launch=launch, next_event=processes.next_event, changed=files.changed, clock=SystemClock())
        return reloader.run()
