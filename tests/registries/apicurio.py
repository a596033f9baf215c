"""A real schema registry: Apicurio Registry with the API of Confluent's, as a local process that keeps all in memory.

Maven Central has it as one archive of 110 MB, which is fetched once.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pykstreams.core.clock import SystemClock
from tests.brokers.made_once import cache_folder, made_at, run
from tests.brokers.ports import free_ports
from tests.brokers.reaper import Process

VERSION: Final = "3.0.9"
_ARCHIVE: Final = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
_START_S: Final = 120.0
_LOOK_S: Final = 0.5


@contextmanager
def apicurio(log: Path) -> Iterator[str]:
    """Runs a registry; gives its address for the settings of a client."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    environment = {**os.environ, "QUARKUS_HTTP_HOST": "127.0.0.1", "QUARKUS_HTTP_PORT": str(port)}
    command = ["java", "-Xmx512m", "-jar", str(_jar())]
    with log.open("wb") as said, Process(command, stdout=said, stderr=said, env=environment) as process:
        try:
            _wait(url, process, log)
            yield url
        finally:
            process.kill()


def set_compatibility(url: str, level: str) -> None:
    """Sets the level of compatibility of the whole registry."""
    body = json.dumps({"compatibility": level}).encode()
    kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/config", body, kind, method="PUT"), timeout=10):
        pass


def _wait(url: str, process: Process, log: Path) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + _START_S
    while True:
        try:
            with urllib.request.urlopen(f"{url}/subjects", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            if process.poll() is not None or clock.monotonic() > deadline:
                raise AssertionError(f"the registry does not start ({error}):\n{log.read_text()[-4000:]}") from error
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_S)


def _jar() -> Path:
    folder = cache_folder() / f"apicurio-{VERSION}"
    if not folder.exists():
        with made_at(folder) as made, tempfile.TemporaryDirectory(dir=folder.parent) as fetched:
            command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={_ARCHIVE}", f"-DoutputDirectory={fetched}"]
            run(command, f"Maven cannot fetch Apicurio Registry {VERSION}")
            (archive,) = Path(fetched).glob("*.tar.gz")
            with tarfile.open(archive) as files:
                files.extractall(made, filter="data")
    (jar,) = folder.glob("*-runner.jar")
    return jar
