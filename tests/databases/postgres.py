"""A PostgreSQL server of the tests' own: in a temporary folder, reached by a socket in it, so that no port is taken."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.brokers.reaper import Process

_USER = "postgres"


def programs() -> Path | None:
    """The folder of ``initdb`` and ``postgres``, the newest one of Debian's; ``None`` where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).resolve().parent


class PostgresServer:
    """A server that can be killed and started again over the same files."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._programs = programs
        self._process: Process | None = None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg:///postgres?host={self.folder}&user={_USER}"

    def create(self) -> None:
        """Makes its files."""
        command = [str(self._programs / "initdb"), "-D", str(self.folder / "data"), "-U", _USER, "-A", "trust", "-N"]
        subprocess.run(command, check=True, capture_output=True, **_unprivileged(self.folder))

    def start(self) -> None:
        """Starts it, and waits until it takes connections."""
        options = ["-k", str(self.folder), "-c", "listen_addresses=", "-c", "fsync=off"]
        command = [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *options]
        with (self.folder / "log").open("ab") as log:
            self._process = Process(command, stdout=log, stderr=log, **_unprivileged(self.folder))
        ready = [str(self._programs / "pg_isready"), "-h", str(self.folder), "-t", "1"]
        while subprocess.run(ready, capture_output=True, check=False).returncode != 0:
            if self._process.poll() is not None:
                raise RuntimeError(f"PostgreSQL has ended: {(self.folder / 'log').read_text()}")

    def stop(self) -> None:
        """Ends it at once, as a crash of the machine would; what was committed is there after the next start."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(60)
            self._process = None


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A running server, whose files are gone afterwards."""
    found = programs()
    assert found is not None, "ask programs() before"
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(folder, _USER)
    server = PostgresServer(folder, found)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def _unprivileged(folder: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {"cwd": folder}
    user = pwd.getpwnam(_USER)
    return {"user": user.pw_uid, "group": user.pw_gid, "cwd": folder}
