"""How a worker of either language is started: the same topology, with the same settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path

from tests.faults.programs import Program
from tests.interop.java_host import compiled

HERE = Path(__file__).parent
_JVM = ("-Xmx256m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOGGING = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")


class Language(StrEnum):
    """What a worker is written in."""

    PYTHON = "python"
    JAVA = "java"

    def command(self, program: Program, settings: Mapping[str, str], file: Path) -> list[str]:
        """The command that starts a worker.

        :param settings: all of its settings, except the names of the handlers that go on after poison.
        :param file: where to write them, for a worker that reads them from there.
        """
        settings = {**settings, **_HANDLERS[self]}
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if self is Language.JAVA:
            return ["java", *_JVM, *_LOGGING, "-cp", _class_path(), "FaultsWorker", str(file), program.name]
        return [sys.executable, "-m", "pykstreams", "run", str(HERE / program.script), "--config", str(file)]


_HANDLERS: Mapping[Language, Mapping[str, str]] = {
    language: {
        "deserialization.exception.handler": f"{place}LogAndContinueExceptionHandler",
        "processing.exception.handler": f"{place}LogAndContinueProcessingExceptionHandler",
    }
    for language, place in ((Language.PYTHON, "pykstreams:"), (Language.JAVA, "org.apache.kafka.streams.errors."))
}


@cache
def _class_path() -> str:
    return compiled(HERE / "java" / "FaultsWorker.java")
