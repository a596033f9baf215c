"""Other stream processors for Python beside pykstreams, each installed on request in an environment of its own.

Nothing else imports them: a program runs with the interpreter of its environment.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

TARGET: Final = Path(__file__).parent / "programs/peers/target"


@dataclass(frozen=True, slots=True)
class Peer:
    """One of them."""

    name: str
    packages: tuple[str, ...]
    """What pip installs, the library itself first."""
    workloads: tuple[str, ...]
    """Those of which there is a program."""

    @property
    def command(self) -> list[str]:
        """Its command line up to the arguments."""
        return [str(self._python), "-m", f"benchmarks.programs.peers.{self.name}"]

    def install(self) -> None:
        """Makes its environment, once; ``RuntimeError`` when that fails."""
        made = TARGET / self.name / "-".join(self.packages)
        if made.exists():
            return
        _run([sys.executable, "-m", "venv", "--clear", str(TARGET / self.name)])
        _run([str(self._python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *self.packages])
        made.touch()

    @property
    def _python(self) -> Path:
        return TARGET / self.name / "bin/python"


PEERS: Final = {
    peer.name: peer
    for peer in (
        # of confluent-kafka it wants a release below 2.13
        Peer("quix", ("quixstreams==3.28.1", "confluent-kafka==2.12.2", "orjson==3.13.0"), ("w1-json", "w2", "w4")),
        # its windows of 100 000 keys take minutes where the others take seconds (README.md)
        Peer("bytewax", ("bytewax[kafka]==0.21.1", "confluent-kafka==2.16.1", "orjson==3.13.0"), ("w1-json", "w2")),
        Peer("pathway", ("pathway==0.33.0", "confluent-kafka==2.16.1", "orjson==3.13.0"), ("w1-json", "w2", "w4")),
    )
}


def peer_commands(names: Iterable[str], console: Console) -> dict[str, list[str]]:
    """The programs of those that can be installed here."""
    found = {}
    for peer in (PEERS[name] for name in names):
        try:
            peer.install()
            found[peer.name] = peer.command
        except RuntimeError as error:
            console.print(f"without {peer.name}: {error}", highlight=False)
    return found


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
