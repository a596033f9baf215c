"""A standalone Spark cluster of two machines: workers at two addresses of this machine, each with one core."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.brokers.ports import free_ports
from tests.brokers.reaper import Process

ROOT = Path(__file__).parents[2]


@contextmanager
def standalone_cluster(folder: Path, hidden: Path | None = None) -> Iterator[str]:
    """Yields the address of its master.

    :param folder: where the workers work.
    :param hidden: a folder of this machine that is an empty one for the workers and all that they start.
    """
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'pykstreams[spark]'")
    (port,) = free_ports(1)
    address = f"spark://127.0.0.1:{port}"
    home = Path(pyspark.__file__).parent
    processes: list[Process] = []
    readers: list[threading.Thread] = []

    def start(prefix: Sequence[str], role: str, ready: str, *options: str) -> None:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", "--webui-port", "0", *options]
        process = Process(
            [*prefix, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SPARK_HOME": str(home)},
        )
        processes.append(process)
        assert process.stdout is not None
        said: list[str] = []
        while ready not in (said or [""])[-1]:
            said.append(process.stdout.readline().decode())
            assert said[-1], f"{role} has ended: {''.join(said)}"
        readers.append(threading.Thread(target=deque(maxlen=0).extend, args=(process.stdout,)))
        readers[-1].start()

    apart = [] if hidden is None else without(hidden)
    try:
        start((), "master.Master", "New state: ALIVE", "--host", "127.0.0.1", "--port", str(port))
        for number in (1, 2):
            options = ["--host", f"127.0.0.{number}", "--cores", "1", "--memory", "1g"]
            work = str(folder / f"worker-{number}")
            start(apart, "worker.Worker", "Successfully registered", *options, "--work-dir", work, address)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)
        for process, reader in zip(processes, readers, strict=False):
            reader.join()
            process.communicate()


def without(folder: Path) -> list[str]:
    """Finds a prefix to commands that makes a folder look empty to them; skips where that is forbidden."""
    own_view = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    emptied = f"mount -t tmpfs none {shlex.quote(str(folder))}"
    tried = subprocess.run([*own_view, "sh", "-c", emptied], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"this machine gives processes no file system of their own: {tried.stderr}")
    return [*own_view, "sh", "-c", f'{emptied} && exec "$0" "$@"']


def environment_of_driver(folder: Path | None = None) -> dict[str, str]:
    """The settings that a driver needs to reach such a cluster.

    :param folder: where it keeps temporary files; the machine's place if left out.
    """
    paths = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    needed = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1"}
    own = {} if folder is None else {"TMPDIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    return {**os.environ, **needed, **own}
