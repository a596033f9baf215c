"""The command lines of the programs that are compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from benchmarks.programs.java_command import java_command

OURS, BARE, JAVA = "pykstreams", "bare", "java"


def commands(only: Sequence[str], console: Console) -> dict[str, list[str]]:
    """Those programs that can run here, ours first."""
    python = [sys.executable, "-m"]
    found = {
        OURS: [*python, "benchmarks.programs.streams"],
        BARE: [*python, "benchmarks.programs.bare"],
    }
    if JAVA in only:
        try:
            found[JAVA] = java_command()
        except RuntimeError as error:
            console.print(f"without Kafka Streams: {error}", highlight=False)
    return {program: command for program, command in found.items() if program in only}


def some(known: Sequence[str], text: str) -> list[str]:
    """Reads the names of some of the known, joined by commas, for ``argparse``."""
    chosen = text.split(",")
    for name in chosen:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
    return chosen
