"""``python -m tests.conformance.fuzz --seeds N`` runs fresh random cases, recorded by Kafka Streams itself.

Of each template N cases are made with N seeds, recorded with the Java oracle (a JDK is needed; on the
first run Maven too) and run through pykstreams. The seeds start at ``--first-seed``, so that a run can be
repeated. The files of cases that fail are kept. The exit code is 1 if any case failed, 3 when the oracle
cannot run.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from tests.conformance.areas import DONE
from tests.conformance.generate import RECORDS, generate
from tests.conformance.recorder import OracleError, record
from tests.conformance.report import file_problems, load, show_failure, summary
from tests.conformance.templates.catalogue import chosen
from tests.conformance.templates.scenario import Template

BATCH = 400
"""Cases that are made, recorded and run together."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="cases of each template")
    parser.add_argument("--first-seed", type=int, default=1000, metavar="S")
    parser.add_argument("--records", type=int, default=RECORDS, help="input records of each case")
    parser.add_argument(
        "--template",
        nargs="+",
        action="extend",
        metavar="T",
        help="default: those of the parts that are done",
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all cases in this folder")
    options = parser.parse_args(arguments)
    try:
        templates = chosen(options.template, DONE)
    except LookupError as error:
        parser.error(str(error.args[0]))
    folder = options.keep or Path(tempfile.mkdtemp(prefix="conformance-fuzz-"))
    passed = failed = 0
    try:
        batches = _batches(templates, range(options.first_seed, options.first_seed + options.seeds))
        for paths in _recorded(folder, batches, options.records):
            bad = _failures(paths, keep=options.keep is not None)
            passed, failed = passed + len(paths) - bad, failed + bad
    except OracleError as error:
        print(error, file=sys.stderr)
        return 3
    if failed:
        print(f"the cases that failed are in {folder}")
    elif options.keep is None:
        shutil.rmtree(folder)
    print(summary(passed, failed))
    return 1 if failed else 0


_Batch = list[tuple[str, Template, int]]


def _batches(templates: dict[str, Template], seeds: range) -> Iterator[_Batch]:
    every = ((name, template, seed) for seed in seeds for name, template in templates.items())
    while batch := list(islice(every, BATCH)):
        yield batch


def _recorded(folder: Path, batches: Iterator[_Batch], records: int) -> Iterator[list[Path]]:
    """Gives the files of each batch; the next one is made and recorded, by another process, in the meantime."""
    with ThreadPoolExecutor(1) as pool:
        ahead: deque[Future[list[Path]]] = deque()
        for batch in batches:
            ahead.append(pool.submit(_record, folder, batch, records))
            if len(ahead) > 1:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _record(folder: Path, batch: _Batch, records: int) -> list[Path]:
    paths = [path for name, template, seed in batch for path in generate(folder, {name: template}, [seed], records)]
    said = record(paths)
    unrecorded = [path for path in paths if "expect" not in load(path)]
    if unrecorded:
        raise OracleError(f"the oracle did not record {unrecorded[0]} ({len(unrecorded)} in all):\n{said}")
    return paths


def _failures(paths: Sequence[Path], *, keep: bool) -> int:
    """Runs the cases, shows those that fail, and gives how many do; what passed is deleted unless it is to be kept."""
    failed = 0
    for path in paths:
        found = file_problems(path)
        if found:
            failed += 1
            show_failure(path, found)
        elif not keep:
            path.unlink()
    return failed


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # cases that fail on purpose would fill the screen
    sys.exit(main())
