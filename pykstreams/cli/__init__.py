"""The command line: ``pykstreams run``, ``describe``, ``topics``, ``bootstrap``, ``backfill`` and ``state``.

Invariant: nothing is imported before it is needed, so that ``--help`` answers at once.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """The entry point of the ``pykstreams`` program; ends the process with one of ``ExitCode``."""
    from pykstreams.cli.app import cli

    cli(prog_name="pykstreams")
