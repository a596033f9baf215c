"""Kafka Streams itself, as the judge: fetches its jars, compiles the programs, and gives the command that runs one."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent / "java"
TARGET = HERE / "target"


def java_command(program: str = "Bench") -> list[str]:
    """Makes the programs ready, and gives the command line of one up to the arguments.

    The jars come from Maven once, or from the folder that ``KAFKA_LIBS`` names. Raises ``RuntimeError`` when this
    machine lacks something, with what it is.
    """
    _require("java", "javac")
    libraries = _libraries()
    classes = TARGET / "classes"
    sources = sorted((HERE / "src").glob("*.java"))
    built = classes / "Bench.class"
    if not built.exists() or any(source.stat().st_mtime > built.stat().st_mtime for source in sources):
        shutil.rmtree(classes, ignore_errors=True)
        _run(["javac", "-cp", f"{libraries}/*", "-d", str(classes), *map(str, sources)])
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", logging, "-cp", f"{classes}{os.pathsep}{libraries}/*", program]


def _libraries() -> Path:
    given = os.environ.get("KAFKA_LIBS")
    if given:
        return Path(given)
    pom = HERE / "pom.xml"
    libraries = TARGET / f"libs-{hashlib.sha256(pom.read_bytes()).hexdigest()[:8]}"
    if not libraries.exists():
        _require("mvn")
        partial = libraries.with_suffix(".partial")
        _run(["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={partial}"])
        partial.rename(libraries)
    return libraries


def _require(*commands: str) -> None:
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        raise RuntimeError(f"not on the PATH: {', '.join(missing)}")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
