"""``docs/quickstart.md``, from an empty folder to its last line, as a user types it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.brokers.brokers import Brokers, create_topic
from tests.brokers.choice import Flavour, chosen, compose_command
from tests.brokers.compose import ensure_image
from tests.brokers.ports import free_ports
from tests.brokers.reaper import when_killed
from tests.docs.pages import ROOT, Block, Page
from tests.docs.shell import Running, Shell, matches, runs_by_now

PAGE = Page("docs/quickstart.md")
EMBEDDED = "127.0.0.1:40495"


class Reader:
    """Somebody who does what the page says, line by line."""

    def __init__(self, shell: Shell, start_broker: Callable[..., Brokers], project: str, *, installs: bool) -> None:
        self.shell = shell
        self._start_broker = start_broker
        self._installs = installs
        self._application: Running | None = None
        self._compose = f"{compose_command()} -p {project}"
        self._has_containers = False

    def do(self, block: Block) -> None:
        if block.language == "python":
            self._write(block)
        elif block.language == "sh":
            *before, last = block.commands
            printed = "".join([*(self._type(command, None) for command in before), self._type(last, block.printed)])
            if block.printed is not None:
                assert matches(block.printed, printed), f"{last}: {printed}"

    def stop(self) -> None:
        if self._application is not None:
            self._application.stop()
            self._application = None

    def close(self) -> None:
        if self._application is not None:
            self._application.kill()
        if self._has_containers:
            subprocess.run(f"{self._compose} down --volumes", shell=True, cwd=self.shell.folder, check=False)

    def _write(self, block: Block) -> None:
        """A file of the page: one that the project has already is as it is there, unless a part of it is replaced."""
        first, _, text = block.text.partition("\n")
        name, _, part = first.removeprefix("# ").partition(", from ")
        file = self.shell.folder / name
        if part:
            assert part == "build on"
            before, _, _ = file.read_text().partition("def build")
            file.write_text(before + text)
        elif file.exists():
            assert file.read_text() == text
        else:
            file.write_text(text)

    def _type(self, command: str, said: str | None) -> str:
        shell = self.shell
        program = command.split()[0]
        if command.startswith("cd "):
            shell.folder /= command.removeprefix("cd ")
            shell.before = [line.replace(" .venv", " ../.venv") for line in shell.before]
            return ""
        if program in ("source", "pip") or command == "python -m venv .venv":
            return self._install(command)
        if program == "docker":
            return self._docker(command)
        if command.startswith("pykstreams run"):
            self._run(command)
            return ""
        if "--url" in command or program == "curl":
            return shell.run_until(command, partial(matches, said) if said is not None else bool)
        return shell.run(command)

    def _install(self, command: str) -> str:
        if not self._installs:
            return ""
        if command.startswith("source"):
            self.shell.before.append(command)
            return ""
        return self.shell.run(command)

    def _run(self, command: str) -> None:
        self.stop()
        workers = re.search(r"--workers (\d+)", command)
        self._application = self.shell.start(command.replace("--http :8080", "--http :0"))
        self._application.wait_until(partial(runs_by_now, workers=int(workers[1]) if workers else 1))
        [port, *_] = re.findall(r"HTTP at port (\d+)", self._application.text)
        self.shell.places["localhost:8080"] = f"localhost:{port}"
        if embedded := re.search(r"the embedded cluster is at (\S+)", self._application.text):
            self.shell.places[EMBEDDED] = embedded[1]

    def _docker(self, command: str) -> str:
        """Docker itself where tests run against it; otherwise a broker with the topics."""
        places = self.shell.places
        if "down" in command:
            self.stop()
        if chosen().flavour is not Flavour.DOCKER:
            if "topics" in command:
                places["localhost:9092"] = self._start_broker().bootstrap_servers
                for topic in ("orders", "spent-by-customer"):
                    create_topic(places["localhost:9092"], topic, partitions=4)
            return ""
        if not self._has_containers:
            ensure_image()
            file = self.shell.folder / "compose.yaml"
            places["localhost:9092"] = f"127.0.0.1:{free_ports(1)[0]}"
            file.write_text(file.read_text().replace("127.0.0.1:9092", places["localhost:9092"]))
            when_killed(["sh", "-c", f"{self._compose} -f {file} down --volumes"])
            self._has_containers = True
        printed = self.shell.run(command.replace("docker compose", self._compose))
        self._has_containers = "down" not in command
        return printed


Read = Callable[..., None]


@pytest.fixture
def read(start_broker: Callable[..., Brokers], make_name: Callable[[str], str]) -> Iterator[Read]:
    """Has somebody do what the page says in a shell."""
    with contextlib.ExitStack() as stack:

        def read(shell: Shell, *, installs: bool = False) -> None:
            user = Reader(shell, start_broker, make_name("pytest-shop"), installs=installs)
            stack.callback(user.close)
            for block in PAGE.blocks:
                user.do(block)
            user.stop()

        yield read


@pytest.mark.slow
def test_every_line_of_the_page_does_what_it_says(tmp_path: Path, read: Read) -> None:
    read(Shell(tmp_path))


@pytest.mark.nightly
def test_the_page_starts_from_an_empty_folder(tmp_path: Path, read: Read) -> None:
    """With a virtual environment and a wheel of its own, in place of those of the tests."""
    wheels, folder = tmp_path / "wheels", tmp_path / "folder"
    folder.mkdir()
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run(build, check=True)
    shell = Shell(folder, environment={"PYTHONPATH": "", "PIP_FIND_LINKS": str(wheels)})

    read(shell, installs=True)

    assert str(folder) in shell.run("python -c 'import pykstreams; print(pykstreams.__file__)'")
