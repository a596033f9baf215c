"""Breaks brokers and workers for a while, and checks from outside what comes out.

    python -m tests.faults --minutes 60 --seed 1
    python -m tests.faults --minutes 5 --brokers 3 --applications eos-lone,eos-several
    python -m tests.faults --minutes 5 --seed 7 --plan > faults.txt      # only prints the schedule
    python -m tests.faults --minutes 5 --brokers 1 --schedule faults.txt  # replays it, with lines left out if wanted

    python -m tests.faults --minutes 9 --applications eos-mixed,eos-mixed-streams,eos-java
    python -m tests.faults --minutes 9 --applications eos-joins,eos-joins-standbys --faults kill,wipe,cut,poison
    python -m tests.faults --minutes 60 --faults none --set rocksdb.memory.bytes=33554432    # only memory

Half of the time there is one broker, half of it three. Of both guarantees there are a lone worker, several workers, and
several workers in a streams group (KIP-1071); the others run if they are named: ``-standbys``, joins instead of counts
(``-joins``, ``-joins-standbys``, ``-joins-streams``), fleets whose workers change their language with each start
(``-mixed``, ``-mixed-streams``, ``-joins-mixed``), and Kafka Streams alone (``-java``, ``-java-streams``,
``-joins-java``), for comparison.
The exit code is 0 when nothing was wrong, 1 when something was, and 2 when the run itself failed.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from tests.faults.applications import OURS, applications
from tests.faults.run import Options, Report, Run, StoppedError
from tests.faults.schedule import Action, read

_SHOWN = 12


def main() -> int:
    arguments = _arguments()
    settings = dict(setting.split("=", 1) for setting in arguments.set)
    known = {one.name: one for one in applications(arguments.several, settings)}
    ours = [name for name in known if name.partition("-")[2] in OURS]
    names = arguments.applications.split(",") if arguments.applications else ours
    if unknown := set(names) - known.keys():
        raise SystemExit(f"unknown applications {sorted(unknown)}; there are {', '.join(known)}")
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="pykstreams-faults-"))
    schedule = read(arguments.schedule.read_text()) if arguments.schedule else None
    clusters = (1, 3) if arguments.brokers == "both" else (int(arguments.brokers),)
    reports: list[Report] = []
    for nodes in clusters:
        options = Options(
            seed=arguments.seed,
            length_s=arguments.minutes * 60 / len(clusters),
            nodes=nodes,
            applications=[known[name] for name in names],
            rate=arguments.rate,
            folder=folder / f"{nodes}-brokers",
            schedule=schedule,
            wanted=_actions(arguments.faults),
        )
        _say(f"seed {options.seed}, {options.length_s / 60:g} minutes with {nodes} brokers; the faults:")
        for fault in options.faults():
            _say(str(fault))
        if arguments.plan:
            continue
        options.folder.mkdir(parents=True, exist_ok=True)
        report = _carry_out(Run(options, _say))
        reports.append(report)
        _say("\n" + report.table())
        for application, failures in report.failures.items():
            _say(f"{application}: {len(failures)} failures")
            for what in failures[:_SHOWN]:
                _say(f"  {what}")
    if arguments.plan:
        return 0
    failed = any(report.failed for report in reports)
    if failed:
        _say(f"the logs are in {folder}")
    elif not arguments.folder:
        shutil.rmtree(folder)
    _say("FAILED" if failed else "PASSED")
    return int(failed)


def _carry_out(run: Run) -> Report:
    """Carries out a run that SIGTERM and SIGINT stop."""

    def stop(*_: object) -> None:
        run.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return run.carry_out()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--brokers", choices=["1", "3", "both"], default="both")
    parser.add_argument("--applications", help="some, by their names; all without Java by default")
    parser.add_argument("--several", type=int, default=3, help="how many workers several are")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="a setting for all workers")
    parser.add_argument("--rate", type=float, default=50, help="lines a second")
    parser.add_argument("--faults", help="some kinds of them, by their names, or 'none'; all by default")
    parser.add_argument("--schedule", type=Path, help="a file with faults to replay, as they are printed")
    parser.add_argument("--plan", action="store_true", help="print the schedule, and do nothing")
    parser.add_argument("--folder", help="where logs and state go; kept. Default: a temporary one, kept after failures")
    return parser.parse_args()


def _actions(names: str | None) -> tuple[Action, ...]:
    if names is None:
        return tuple(Action)
    try:
        return () if names == "none" else tuple(map(Action, names.split(",")))
    except ValueError as error:
        raise SystemExit(f"{error}; there are {', '.join(Action)}, or none") from error


def _say(what: str) -> None:
    print(what, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StoppedError:
        _say("stopped")
        sys.exit(2)
    except Exception:  # 1 is for findings
        traceback.print_exc()
        sys.exit(2)
