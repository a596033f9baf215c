"""One run: brokers, applications and their input, faults by schedule, and a verdict."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.brokers.brokers import create_topic
from tests.faults.checks import Expected, check_application
from tests.faults.cluster import Cluster
from tests.faults.feed import Feed
from tests.faults.schedule import CLUSTER, Fault, plan
from tests.faults.silence import EVERYBODY, Outages, Silence, silences
from tests.faults.topics import LINES, NOTES, PARTITIONS, Output
from tests.faults.watch import Watch
from tests.faults.workers import Application, Fleet

_LOOK_EVERY_S = 0.5
_START_S = 60.0
"""All applications have results after so long."""

_FINISH_S = 90.0
"""After the last fault, everything that was fed must have come out within this time."""

_LANE_S = 90.0
_SHOWN = 3
_KEPT = {"retention_ms": -1}
_WRITTEN_AT = {"message_timestamp_type": "LogAppendTime"}
"""Of results, so that a wrong one can be found in logs."""


class StoppedError(Exception):
    """The run was stopped from outside."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is made of; the same options and the same seed have the same faults."""

    seed: int
    length_s: float
    nodes: int
    applications: Sequence[Application]
    rate: float
    folder: Path
    schedule: Sequence[Fault] | None = None
    """Faults to replay, instead of those of the seed."""

    def faults(self) -> list[Fault]:
        """The faults of the run, in their order."""
        nodes = ("kafka",) if self.nodes == 1 else tuple(f"kafka-{number}" for number in range(1, self.nodes + 1))
        fleets = {one.name: one.workers for one in self.applications}
        if self.schedule is None:
            return plan(seed=self.seed, length_s=self.length_s, nodes=nodes, fleets=fleets)
        known = {CLUSTER, *nodes, *(worker for workers in fleets.values() for worker in workers)}
        return [fault for fault in self.schedule if fault.target in known]


@dataclass
class Report:
    """What came of a run."""

    options: Options
    faults: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[str]] = field(default_factory=dict)
    longest_gap_s: dict[str, float] = field(default_factory=dict)
    ends_of_java: Counter[str] = field(default_factory=Counter)
    """How often a worker of Java ended otherwise than it should, by application."""
    lines: int = 0
    skipped_markers: list[str] = field(default_factory=list)
    """Transactions that a broker has left open for ever: what exactly-once makes of them is no fault of a worker."""

    @property
    def failed(self) -> bool:
        return any(self.failures.values())

    def fail(self, application: str, what: str) -> None:
        self.failures.setdefault(application, []).append(what)

    def table(self) -> str:
        """One line for each application."""
        heads = f"{'lines':>8} {'longest gap':>12} {'failures':>8} {'ends of Java':>12}"
        rows = [f"{'application':<18} {'workers':>7} {'faults':>6} {heads}"]
        for one in self.options.applications:
            faults = sum(count for target, count in self.faults.items() if target in one.workers)
            rows.append(
                f"{one.name:<18} {len(one.workers):>7} {faults:>6} {self.lines:>8} "
                f"{self.longest_gap_s.get(one.name, 0):>10.1f} s {len(self.failures.get(one.name, [])):>8} "
                f"{self.ends_of_java[one.name]:>12}"
            )
        of_brokers = sum(self.faults.values()) - sum(
            count for target, count in self.faults.items() for one in self.options.applications if target in one.workers
        )
        rows.append(f"brokers: {self.options.nodes}, with {of_brokers} faults")
        if self.skipped_markers:
            rows.append("transactions that the broker left open, so that exactly-once cannot be judged:")
            rows += [f"  {line[:200]}" for line in self.skipped_markers]
        return "\n".join(rows)


class Run:
    """Carries out one run; ``stop`` ends it early, from any thread or signal handler."""

    def __init__(self, options: Options, say: Callable[[str], object]) -> None:
        self._options = options
        self._say = say
        self._began = time.monotonic()
        self._stopping = threading.Event()
        self._report = Report(options)

    def stop(self) -> None:
        self._stopping.set()

    def carry_out(self) -> Report:
        """Runs to the end, and stops everything that it started, whatever happens."""
        options, report = self._options, self._report
        names = tuple(one.name for one in options.applications)
        with ExitStack() as stack:
            cluster = stack.enter_context(Cluster.started(options.nodes, names, self._pause))
            stack.callback(cluster.keep_logs, options.folder)
            servers = cluster.bootstrap_servers
            for topic in (LINES, NOTES):
                create_topic(servers, topic, partitions=PARTITIONS, **_KEPT)
            for topic in (output.topic(name) for name in names for output in Output):
                create_topic(servers, topic, partitions=PARTITIONS, **_KEPT, **_WRITTEN_AT)
            outages = Outages(time.time)
            watch = Watch(servers, options.applications)
            stack.callback(watch.stop)
            feed = Feed(servers, seed=options.seed, rate=options.rate, on_input=watch.input)
            stack.callback(feed.abandon)
            fleet = Fleet.of(options.applications, servers, options.folder, outages, self._pause, self._say_at)
            stack.callback(fleet.end)
            self._say_at(f"brokers at {servers}; logs in {options.folder}")
            outages.note(EVERYBODY, time.time(), time.time() + _START_S, "the start")
            fleet.start()
            watch.start()
            feed.start()
            self._wait(_START_S, fleet, lambda: all(map(watch.has_results, names)))
            self._say_at("all applications have results; faults begin")
            self._break(cluster, fleet, outages)
            feed.stop()
            self._say_at("the faults are over; everything must come out")
            self._wait(_FINISH_S, fleet, lambda: not any(watch.behind(name, feed.highest) for name in names))
            self._look_for_unfinished(cluster, watch, feed)
            fleet.stop()
            report.skipped_markers = cluster.skipped_markers()
            self._judge(servers, watch, fleet, outages, feed)
        return report

    def _break(self, cluster: Cluster, fleet: Fleet, outages: Outages) -> None:
        """Lets faults happen until all of them are over and the time is up."""
        lanes: dict[str, list[Fault]] = {}
        for fault in self._options.faults():
            worker = fleet.workers.get(fault.target)
            lanes.setdefault(worker.application.name if worker is not None else EVERYBODY, []).append(fault)
        began = time.monotonic()
        trouble: list[BaseException] = []

        def carry_out(faults: Iterable[Fault]) -> None:
            try:
                for fault in faults:
                    self._pause(fault.at_s - (time.monotonic() - began))
                    self._say_at(f"{fault.target} {fault.action} {fault.length_s:g} s")
                    if fault.target in fleet.workers:
                        more = fleet.carry_out(fault)
                    else:
                        with outages.during(EVERYBODY, f"{fault.target} {fault.action}"):
                            more = cluster.carry_out(fault)
                    self._report.faults[fault.target] += 1
                    self._say_at(f"{fault.target} {fault.action} is over" + (f": {more}" if more else ""))
            except StoppedError:
                return
            except BaseException as error:
                trouble.append(error)
                self.stop()

        threads = [threading.Thread(target=carry_out, args=[faults], daemon=True) for faults in lanes.values()]
        for thread in threads:
            thread.start()
        try:
            self._wait(
                self._options.length_s + _LANE_S * len(threads),
                fleet,
                lambda: (
                    time.monotonic() - began >= self._options.length_s
                    and not any(thread.is_alive() for thread in threads)
                ),
            )
        finally:
            if any(thread.is_alive() for thread in threads):
                self.stop()
            for thread in threads:
                thread.join(_LANE_S)
            if trouble:
                raise trouble[0]

    def _look_for_unfinished(self, cluster: Cluster, watch: Watch, feed: Feed) -> None:
        for name in (one.name for one in self._options.applications):
            behind = watch.behind(name, feed.highest)
            if behind:
                watch.gaps.end(name, time.time())
                what = f"{name} has not finished {_FINISH_S:g} s after the last fault: {', '.join(behind)}"
                self._report.fail(name, what)
                more = [*watch.explain(name), *cluster.transactions()]
                self._say_at("\n    | ".join([f"FAILURE: {what}", *more]))

    def _judge(self, servers: str, watch: Watch, fleet: Fleet, outages: Outages, feed: Feed) -> None:
        report = self._report
        report.ends_of_java = fleet.of_java
        for application, what in fleet.failures:
            report.fail(application, what)
        for what in feed.failures:
            report.fail("feed", what)
        for name in (one.name for one in self._options.applications):
            gaps = [gap for gap in watch.gaps.found if gap.place[0] == name]
            for together in silences(gaps, outages.of(name)):
                report.fail(name, _describe(together))
        self._say_at("reading what came out")
        expected = Expected.read(servers)
        report.lines = len(expected)
        for one in self._options.applications:
            report.longest_gap_s[one.name] = watch.gaps.longest(one.name)
            for what in check_application(servers, one.name, expected, exactly_once=one.exactly_once):
                report.fail(one.name, what)

    def _wait(self, timeout_s: float, fleet: Fleet, done: Callable[[], bool]) -> None:
        """Looks after the workers until something is done, or the time is over."""
        deadline = time.monotonic() + timeout_s
        while not done() and time.monotonic() < deadline:
            fleet.look_after()
            self._pause(_LOOK_EVERY_S)

    def _pause(self, seconds: float) -> None:
        if self._stopping.wait(max(0.0, seconds)):
            raise StoppedError

    def _say_at(self, what: str) -> None:
        self._say(f"{_clock(time.time())} {time.monotonic() - self._began:7.1f} s  {what}")


def _describe(together: Sequence[Silence]) -> str:
    longest = together[0]
    gap, after = longest.gap, longest.after
    places = {f"{silence.gap.place[1]}-{silence.gap.place[2]}" for silence in together}
    return (
        f"{_clock(gap.start)} to {_clock(gap.end)}: silent for {gap.end - gap.start:.1f} s, {longest.too_long_s:.1f} s "
        f"longer than outages explain, in {len(places)} partitions, as {', '.join(sorted(places)[:_SHOWN])}"
        + (f"; the last outage: {after.why}, over at {_clock(after.end)}" if after is not None else "")
    )


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
