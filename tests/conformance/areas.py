"""Which cases are done: the one list that tests, the command without a path, and the fuzzer go by.

``parts.txt`` says which part each recorded case belongs to; ``DONE`` names the parts that are built, whose
cases must pass.
"""

from __future__ import annotations

from pathlib import Path

DONE = (1, 2, 3, 4)

HERE = Path(__file__).parent


def parts() -> dict[Path, int]:
    """Gives the part of each recorded case, as ``parts.txt`` lists them."""
    lines = (HERE / "parts.txt").read_text(encoding="utf-8").splitlines()
    return {HERE / path: int(part) for part, path in (line.split() for line in lines if line.strip())}


def done_files() -> list[Path]:
    """Gives the case files of the parts that are done, in order."""
    return sorted(path for path, part in parts().items() if part in DONE)
