"""A JVM with the real Kafka Streams, which hosts applications and tells what a group has committed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import subprocess
import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.brokers.made_once import cache_folder, made_at, run
from tests.brokers.settings import KAFKA_VERSION

HERE = Path(__file__).parent
JVM = ("-Xmx768m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOGGING = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
PATIENCE_S = 240.0


class JavaError(AssertionError):
    """An application has failed in the JVM; the text is Java's."""


def class_path() -> str:
    """The class path of the hosted applications."""
    return compiled(HERE / "java" / "Interop.java")


def compiled(source: Path) -> str:
    """The jars, which Maven fetches once, and a program of ours, which is compiled when it has changed."""
    cache = cache_folder()
    pom = HERE / "pom.xml"
    jars = cache / f"streams-{KAFKA_VERSION}-{_digest(pom)}"
    if not jars.exists():
        with made_at(jars) as made:
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
            command += [f"-Dkafka.version={KAFKA_VERSION}", f"-DoutputDirectory={made}"]
            run(command, f"Maven cannot fetch the jars of Kafka Streams {KAFKA_VERSION}")
    classes = cache / f"{source.stem.lower()}-{_digest(source)}-{jars.name}"
    if not classes.exists():
        with made_at(classes) as made:
            command = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(made), str(source)]
            run(command, f"{source.name} cannot be compiled")
    return f"{classes}{os.pathsep}{jars}/*"


class JavaHost:
    """One JVM; applications in it have names, under which it says what becomes of them."""

    def __init__(self, path: str, log: Path) -> None:
        self._said: defaultdict[str, queue.Queue[list[str]]] = defaultdict(queue.Queue)
        self._writing = threading.Lock()
        self._path = path
        self.log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                ["java", *JVM, *LOGGING, "-cp", path, "Interop"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.wait_for("-", "READY")

    def start(self, name: str, application: str, settings: Mapping[str, str]) -> None:
        self._send("start", name, application, *(f"{key}={value}" for key, value in settings.items()))

    def stop(self, name: str, *, leave: bool) -> None:
        """Closes an application, and waits; ``leave``: with ``CloseOptions`` that take it out of the group."""
        self._send("stop", name, "leave" if leave else "remain")
        assert self.wait_for(name, "STOPPED") == ["true"], f"{name} was not closed in time"

    def committed(self, brokers: str, group: str) -> dict[tuple[str, int], tuple[int, bytes]]:
        """Offset and metadata that a group has committed, by topic and partition, as Java's admin client reads them."""
        name = f"offsets of {group}"
        self._send("offsets", name, brokers, group)
        found = {}
        for text in self.wait_for(name, "OFFSETS"):
            topic, partition, offset, metadata = text.split(" ")
            found[topic, int(partition)] = int(offset), bytes.fromhex(metadata)
        return found

    def wait_for(self, name: str, *what: str) -> list[str]:
        """Waits until something is said of a name, and gives what else is said with it."""
        while True:
            try:
                said = self._said[name].get(timeout=PATIENCE_S)
            except queue.Empty:
                raise JavaError(f"{name}: no {what} within {PATIENCE_S:g} s; {self.log_tail()}") from None
            if said[0] == "FAILED":
                raise JavaError(f"{name}: {said}")
            if said[: len(what)] == list(what):
                return said[len(what) :]

    def check(self, name: str) -> None:
        """Raises when the application has failed."""
        with contextlib.suppress(queue.Empty):
            while True:
                said = self._said[name].get_nowait()
                if said[0] == "FAILED" or said[:2] == ["STATE", "ERROR"]:
                    raise JavaError(f"{name}: {said}")
        if self.process.poll() is not None:
            raise JavaError(f"the JVM ended: {self.log_tail()}")

    def run_tool(self, main_class: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs one of Kafka's tools in a JVM of its own."""
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        command = ["java", *JVM, quiet, "-cp", self._path, main_class, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        self.process.kill()
        self._listener.join()
        self.process.communicate()  # closes the pipes

    def _send(self, *parts: str) -> None:
        assert self.process.stdin is not None
        with self._writing:
            self.process.stdin.write("\t".join(parts) + "\n")
            self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            name, *what = line.rstrip("\n").split("\t")
            self._said[name].put(what)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8]
