"""``python -m tests.conformance PATH...`` runs cases through pykstreams and shows each difference.

Every case file named and every ``*.json`` under the folders named is run; ``--area NAME`` (may repeat)
keeps only the cases of those areas. Without a path, all cases of the parts that are done are run. The exit
code is 1 if any case failed.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.areas import done_files
from tests.conformance.errors import FormatError
from tests.conformance.report import case_files, file_problems, load, show_failure, summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; gives its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="case files, and folders of case files")
    parser.add_argument("--area", action="append", metavar="NAME", help="only cases of this area; may repeat")
    options = parser.parse_args(arguments)
    try:
        files = list(case_files(options.paths)) if options.paths else done_files()
    except FileNotFoundError as error:
        parser.error(str(error))
    passed = failed = 0
    for path in files:
        if options.area and _area(path) not in options.area:
            continue
        found = file_problems(path)
        if found:
            failed += 1
            show_failure(path, found)
        else:
            passed += 1
    print(summary(passed, failed))
    return 1 if failed else 0


def _area(path: Path) -> str | None:
    """The area that a case states; a file that is no case keeps its folder's name, so that it is not lost."""
    try:
        area: str | None = load(path).get("area", path.parent.name)
    except (FormatError, AttributeError):
        return path.parent.name
    return area


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # cases that fail on purpose would fill the screen
    sys.exit(main())
