"""``python -m tests.conformance.generate DIR`` writes random cases, for the oracle to record."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from tests.conformance.caselib import CaseFolder
from tests.conformance.templates.catalogue import chosen
from tests.conformance.templates.scenario import Template, steps

RECORDS = 40


def generate(folder: Path, templates: dict[str, Template], seeds: Iterable[int], records: int = RECORDS) -> list[Path]:
    """Writes one case for each template and seed."""
    cases = CaseFolder(folder)
    written = []
    for name, template in templates.items():
        for seed in seeds:
            rng = Random(f"{name}/{seed}/{records}")
            scenario = template.make(rng)
            written.append(
                cases.write(
                    f"random_{name}_{seed}",
                    f"random_{template.area}",
                    f"random input, template {name}, seed {seed}, {records} records",
                    scenario.topology,
                    steps(scenario, rng, records),
                    config=scenario.config,
                    cache=scenario.cache,
                )
            )
    return written


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; gives its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.generate", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--seeds", type=int, default=2, help="how many cases to make of each template")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--records", type=int, default=RECORDS, help="input records of each case")
    parser.add_argument("--template", action="append", metavar="NAME", help="may repeat; default: all")
    options = parser.parse_args(arguments)
    try:
        templates = chosen(options.template, parts=(1, 2, 3, 4))
    except LookupError as error:
        parser.error(str(error.args[0]))
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(f"{len(generate(options.folder, templates, seeds, options.records))} cases written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
