"""Brokers as plain local Java processes: for machines without Docker, and where the broker's own speed
matters.

    python -m tests.brokers.local_broker [PORT]     prints the address and runs one broker until Ctrl-C

The jars come from Maven once. A formatted storage directory and the broker's loaded classes (class data
sharing) are kept beside them, so that a later start takes about a second.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.brokers.brokers import wait_until_ready
from tests.brokers.made_once import cache_folder, made_at, run
from tests.brokers.ports import free_ports
from tests.brokers.reaper import Process, when_killed
from tests.brokers.settings import CLUSTER_ID, KAFKA_VERSION, ONE_BROKER, THREE_BROKERS

SCRIPTS = Path(__file__).parents[2] / "scripts/kafka"
SMALL_JVM = ("-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Quick to start; a benchmark hands in its own options."""

_START_TIMEOUT_S = 180.0
_CONTROLLER = 100
"""The number of a controller that is a process of its own."""


class LocalBrokers:
    """One broker, or a cluster of three, each a process of its own; implements ``Brokers``."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] = ONE_BROKER,
        *,
        nodes: int = 1,
        port: int | None = None,
        jvm: Sequence[str] = SMALL_JVM,
        more_listeners: Mapping[str, int] | None = None,
        proxies: Sequence[int] | None = None,
        own_controller: bool = False,
    ) -> None:
        """Prepares the nodes for ``start_all``; ``port`` is the first one's, by default a free one.

        :param more_listeners: of a single broker, by the name of their security protocol; they say "localhost", which
            their certificates are made out to.
        :param proxies: the port of a proxy before each node, which passes on to one of ``proxied_ports``; who comes
            this way is shown this way to every node.
        :param own_controller: whether the controller is a process of its own, which is no node and so is never broken.
        """
        self.directory = directory
        self._runtime = runtime = _Runtime()
        ports = free_ports((3 if proxies else 2) * nodes)
        self.proxied_ports = tuple(ports[2 * nodes :])
        if port is not None:
            ports[0] = port
        controllers = {number: ports[nodes + number - 1] for number in range(1, nodes + 1)}
        self._controller: _Node | None = None
        if own_controller:
            controllers = {_CONTROLLER: ports[nodes]}
        voters = ",".join(f"{number}@127.0.0.1:{at}" for number, at in controllers.items())
        if own_controller:
            properties = _controller_properties(ports[nodes], voters, settings)
            self._controller = _Node(runtime, directory / str(_CONTROLLER), properties, ports[nodes], jvm)
        self._nodes = {
            "kafka" if nodes == 1 else f"kafka-{number}": _Node(
                runtime,
                directory / str(number),
                _properties(
                    number,
                    ports[number - 1],
                    controllers.get(number),
                    voters,
                    settings,
                    more_listeners or {},
                    (self.proxied_ports[number - 1], proxies[number - 1]) if proxies else None,
                ),
                ports[number - 1],
                jvm,
            )
            for number in range(1, nodes + 1)
        }
        self.nodes = tuple(self._nodes)
        self.bootstrap_servers = ",".join(f"127.0.0.1:{number}" for number in ports[:nodes])

    def start_all(self) -> None:
        for node in self._processes():
            node.start()
        for node in self._processes():
            node.wait_until_listening()

    def stop_all(self) -> None:
        """Ends every node: an orderly stop of throw-away brokers is lost time (10 s for three of them)."""
        for node in self._processes():
            node.end()
        for node in self._processes():
            node.wait()

    def kill(self, node: str) -> None:
        self._nodes[node].signal(signal.SIGKILL)
        self._nodes[node].wait()

    def stop(self, node: str) -> None:
        self._nodes[node].terminate()
        self._nodes[node].wait()

    def start(self, node: str) -> None:
        self._nodes[node].start()
        self._nodes[node].wait_until_listening()

    @contextlib.contextmanager
    def paused(self, node: str) -> Iterator[None]:
        self._nodes[node].signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._nodes[node].signal(signal.SIGCONT)

    def pid(self, node: str) -> int:
        """The node's process, to measure it."""
        return self._nodes[node].pid

    def tool(self, *arguments: str) -> str:
        """What one of Kafka's own tools says, called by its class."""
        return run(self._runtime.command(*arguments, jvm=SMALL_JVM), f"{arguments[0]} failed")

    def log_tail(self) -> str:
        return "".join(f"{name}:\n{node.log_tail()}\n" for name, node in self._nodes.items())

    def _processes(self) -> list[_Node]:
        return [*([self._controller] if self._controller is not None else []), *self._nodes.values()]


@contextlib.contextmanager
def local_brokers(
    settings: Mapping[str, str] = ONE_BROKER,
    *,
    nodes: int = 1,
    port: int | None = None,
    jvm: Sequence[str] = SMALL_JVM,
    more_listeners: Mapping[str, int] | None = None,
    proxies: Sequence[int] | None = None,
    own_controller: bool = False,
) -> Iterator[LocalBrokers]:
    """Ready brokers for the length of a block, with a temporary directory for their data."""
    with tempfile.TemporaryDirectory(prefix="kafka-") as directory:
        taken_care_of = when_killed(["rm", "-rf", directory])
        brokers = LocalBrokers(
            Path(directory),
            settings,
            nodes=nodes,
            port=port,
            jvm=jvm,
            more_listeners=more_listeners,
            proxies=proxies,
            own_controller=own_controller,
        )
        try:
            brokers.start_all()
            wait_until_ready(brokers)
            yield brokers
        finally:
            brokers.stop_all()
    taken_care_of()


def three_brokers() -> contextlib.AbstractContextManager[LocalBrokers]:
    """Three brokers of one cluster."""
    return local_brokers(THREE_BROKERS, nodes=3)


class _Runtime:
    """Java, the broker's jars, and what is kept between starts; the cache's name covers all it depends on."""

    def __init__(self) -> None:
        home = os.environ.get("JAVA_HOME")
        self.java = str(Path(home) / "bin/java") if home else (shutil.which("java") or "java")
        pom = (SCRIPTS / "pom.xml").read_bytes()
        cache = cache_folder()
        libraries = cache / f"libs-{KAFKA_VERSION}-{hashlib.sha256(pom).hexdigest()[:8]}"
        if not libraries.exists():
            _download(libraries)
        self.class_path = f"{libraries}/*"
        real = os.path.realpath(self.java)
        key = f"{real} {os.stat(real).st_mtime_ns} {libraries}"
        self.cache = cache / f"jvm-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
        self.cache.mkdir(parents=True, exist_ok=True)
        self.archive = self.cache / "kafka.jsa"

    def command(self, *arguments: str, jvm: Sequence[str]) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={SCRIPTS / 'image/log4j2.yaml'}"
        return [self.java, *jvm, logging, "-cp", self.class_path, *arguments]


def _download(libraries: Path) -> None:
    """Fetches the jars with Maven."""
    with made_at(libraries) as made:
        command = ["mvn", "-q", "-B", "-f", str(SCRIPTS / "pom.xml"), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-Dkafka.version={KAFKA_VERSION}", f"-DoutputDirectory={made}"]
        run(command, f"Maven cannot fetch the jars of Kafka {KAFKA_VERSION}")


class _Node:
    """One broker process and its data."""

    def __init__(
        self, runtime: _Runtime, directory: Path, properties: Mapping[str, str], port: int, jvm: Sequence[str]
    ) -> None:
        self._runtime, self._directory, self._port, self._jvm = runtime, directory, port, jvm
        self._properties = {**properties, "log.dirs": str(directory / "data")}
        self._process: Process | None = None
        self._new_archive: Path | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self._properties.items()))
        if not (self._directory / "data").exists():
            self._format(config)
        if self._runtime.archive.exists():
            share = f"-XX:SharedArchiveFile={self._runtime.archive}"
        else:
            self._new_archive = self._runtime.cache / f"kafka.{os.getpid()}.{self._port}.jsa"
            share = f"-XX:ArchiveClassesAtExit={self._new_archive}"
        with (self._directory / "broker.log").open("ab") as log:
            command = self._runtime.command("kafka.Kafka", str(config), jvm=[*self._jvm, share])
            self._process = Process(command, stdout=log, stderr=log)

    def wait_until_listening(self) -> None:
        process = self._running()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self._port), 0.2).close()
                return
            if process.poll() is not None:
                raise RuntimeError(f"the broker exited with {process.returncode} at its start:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the broker does not listen on port {self._port} after {_START_TIMEOUT_S:g} s:\n" + self.log_tail()
                )
            time.sleep(0.02)

    def signal(self, number: signal.Signals) -> None:
        self._running().send_signal(number)

    def terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def end(self) -> None:
        """Kills the node, unless it still has to write its archive of classes."""
        if self._process is not None and self._new_archive is None:
            self._process.kill()
        else:
            self.terminate()

    def wait(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:  # the last of three has no quorum left to sign off with
            self._process.kill()
            self._process.wait()
        self._process = None
        if self._new_archive is not None and self._new_archive.exists():
            self._new_archive.rename(self._runtime.archive)
            self._new_archive = None

    def log_tail(self) -> str:
        log = self._directory / "broker.log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else "(no log)"

    def _running(self) -> Process:
        if self._process is None:
            raise RuntimeError(f"the broker on port {self._port} is not running")
        return self._process

    def _format(self, config: Path) -> None:
        """Formatting needs a JVM of its own (0.3 to 0.8 s); the outcome for a node number can be copied."""
        template = self._runtime.cache / f"formatted-{self._properties['node.id']}"
        if template.exists():
            shutil.copytree(template, self._directory / "data")
            return
        format_it = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)]
        run(self._runtime.command(*format_it, jvm=SMALL_JVM), "the broker's storage cannot be formatted")
        with made_at(template) as made:
            shutil.copytree(self._directory / "data", made, dirs_exist_ok=True)


def _properties(
    number: int,
    port: int,
    controller_port: int | None,
    voters: str,
    settings: Mapping[str, str],
    more_listeners: Mapping[str, int],
    proxied: tuple[int, int] | None,
) -> dict[str, str]:
    """The settings of a node.

    :param controller_port: the port of the controller that it is as well; ``None`` if it is none.
    :param proxied: a further port of it, and the one of a proxy before that.
    """
    open_to_clients = [f"PLAINTEXT://127.0.0.1:{port}"]
    open_to_clients += [f"{name}://localhost:{found}" for name, found in more_listeners.items()]
    protocols = ["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in ("PLAINTEXT", *more_listeners))]
    advertised = list(open_to_clients)
    if proxied is not None:
        open_to_clients.append(f"PROXIED://127.0.0.1:{proxied[0]}")
        advertised.append(f"PROXIED://127.0.0.1:{proxied[1]}")
        protocols.append("PROXIED:PLAINTEXT")
    if controller_port is not None:
        open_to_clients.append(f"CONTROLLER://127.0.0.1:{controller_port}")
    return {
        "process.roles": "broker" if controller_port is None else "broker,controller",
        "node.id": str(number),
        "controller.quorum.voters": voters,
        "listeners": ",".join(open_to_clients),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(protocols),
        "controller.listener.names": "CONTROLLER",
        **settings,
    }


def _controller_properties(port: int, voters: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {
        "process.roles": "controller",
        "node.id": str(_CONTROLLER),
        "controller.quorum.voters": voters,
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        **settings,
    }


def main(arguments: Sequence[str]) -> None:
    """Runs one broker until it is interrupted."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore SIGINT otherwise
        signal.signal(number, signal.default_int_handler)
    with (
        contextlib.suppress(KeyboardInterrupt),
        local_brokers(port=int(arguments[0]) if arguments else 9092) as brokers,
    ):
        print(brokers.bootstrap_servers, flush=True)
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
