"""How other libraries are asked for, and what becomes of one that cannot be installed."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import peers
from benchmarks.peers import PEERS, Peer, peer_commands


def asked(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    found: list[str] = command.arguments().peers
    return found


def test_none_is_installed_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch) == []


def test_all_are_asked_for_or_some_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, "--peers") == list(PEERS)
    assert asked(monkeypatch, "--peers", "quix,pathway") == ["quix", "pathway"]


def test_a_name_of_none_of_them_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        asked(monkeypatch, "--peers", "kafka")

    assert "kafka" in capsys.readouterr().err


def test_one_that_cannot_be_installed_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def install(self: Peer) -> None:
        if self.name == "bytewax":
            raise RuntimeError("no wheel for this interpreter")

    monkeypatch.setattr(Peer, "install", install)
    written = io.StringIO()

    found = peer_commands(["quix", "bytewax"], Console(file=written))

    assert list(found) == ["quix"]
    assert found["quix"][1:] == ["-m", "benchmarks.programs.peers.quix"]
    assert "without bytewax: no wheel for this interpreter" in written.getvalue()


@pytest.mark.parametrize("name", PEERS)
def test_each_has_a_program(name: str) -> None:
    assert (Path(peers.__file__).parent / f"programs/peers/{name}.py").exists()
