"""One run: brokers, applications and their input, faults by schedule, and a verdict."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.brokers.brokers import create_topic
from tests.faults.applications import Application
from tests.faults.checks import Expected, check_application
from tests.faults.cluster import Cluster
from tests.faults.feed import Feed
from tests.faults.languages import Language
from tests.faults.memory import Memory
from tests.faults.network import Network
from tests.faults.schedule import CLUSTER, INPUT, Action, Crew, Fault, plan
from tests.faults.silence import ALLOWED_S, EVERYBODY, Outages, Silence, silences
from tests.faults.small_disk import mountable, small_disk
from tests.faults.topics import INPUTS, PARTITIONS, dead_letters
from tests.faults.watch import Watch
from tests.faults.workers import Fleet, Worker

_LOOK_EVERY_S = 0.5
_START_S = 60.0
"""All applications have results after so long."""

_FINISH_S = 90.0
"""After the last fault, everything that was fed must have come out within this time."""

_LOOKS, _LOOK_AGAIN_S = 2, 2.0
"""So often time is moved on at the end, each time after so long."""

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
    wanted: Collection[Action] = tuple(Action)
    """The kinds of faults that there are."""
    allowed_s: float = ALLOWED_S
    """So long results may stay away beyond an outage; longer than by default on a machine with other work."""

    def faults(self) -> list[Fault]:
        """The faults of the run, in their order."""
        nodes = ("kafka",) if self.nodes == 1 else tuple(f"kafka-{number}" for number in range(1, self.nodes + 1))
        crews = {one.name: Crew(one.workers, one.spare) for one in self.applications}
        if self.schedule is None:
            return plan(seed=self.seed, length_s=self.length_s, nodes=nodes, crews=crews, wanted=self.wanted)
        workers = (worker for crew in crews.values() for worker in (*crew.workers, crew.spare))
        known = {CLUSTER, INPUT, *nodes, *workers}
        return [fault for fault in self.schedule if fault.target in known]


@dataclass
class Report:
    """What came of a run."""

    options: Options
    faults: Counter[str] = field(default_factory=Counter)
    left_out: int = 0
    """Faults that this machine, or the client, did not allow."""
    failures: dict[str, list[str]] = field(default_factory=dict)
    longest_gap_s: dict[str, float] = field(default_factory=dict)
    ends_of_java: Counter[str] = field(default_factory=Counter)
    """How often a worker of Java ended otherwise than it should, by application."""
    lines: int = 0
    memory: Memory = field(default_factory=Memory)
    skipped_markers: list[str] = field(default_factory=list)
    """Transactions that a broker has left open for ever: what exactly-once makes of them is no fault of a worker."""

    @property
    def failed(self) -> bool:
        return any(self.failures.values())

    def fail(self, application: str, what: str) -> None:
        self.failures.setdefault(application, []).append(what)

    def table(self) -> str:
        """One line for each application."""
        heads = (
            f"{'lines':>8} {'longest gap':>12} {'failures':>8} {'ends of Java':>12} {'most RSS':>10} {'and growth':>12}"
        )
        rows = [f"{'application':<18} {'workers':>7} {'faults':>6} {heads}"]
        of_workers = 0
        for one in self.options.applications:
            faults = sum(self.faults[worker] for worker in (*one.workers, one.spare))
            of_workers += faults
            most_mb, growth = self.memory.of((*one.workers, one.spare))
            rows.append(
                f"{one.name:<18} {len(one.workers):>7} {faults:>6} {self.lines:>8} "
                f"{self.longest_gap_s.get(one.name, 0):>10.1f} s {len(self.failures.get(one.name, [])):>8} "
                f"{self.ends_of_java[one.name]:>12} {most_mb:>7.0f} MB "
                + ("not known" if growth is None else f"{growth:+.1f} MB/h").rjust(12)
            )
        poison, left_out = self.faults[INPUT], f", {self.left_out} left out" if self.left_out else ""
        of_brokers = self.faults.total() - of_workers - poison
        rows.append(f"brokers: {self.options.nodes}, with {of_brokers} faults; {poison} of the input{left_out}")
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
        self._workers: Fleet | None = None

    def stop(self) -> None:
        self._stopping.set()

    def carry_out(self) -> Report:
        """Runs to the end, and stops everything that it started, whatever happens."""
        options, report = self._options, self._report
        names = tuple(one.name for one in options.applications)
        with ExitStack() as stack:
            network = self._network(stack)
            ports = None if network is None else network.ports
            cluster = stack.enter_context(Cluster.started(options.nodes, names, self._pause, proxies=ports))
            stack.callback(cluster.keep_logs, options.folder)
            servers = cluster.bootstrap_servers
            if network is not None:
                network.lead_to(cluster.proxied_ports)
            for topic in INPUTS:
                create_topic(servers, topic, partitions=PARTITIONS, **_KEPT)
            for one in options.applications:
                for topic in (*(output.topic(one.name) for output in one.outputs), dead_letters(one.name)):
                    create_topic(servers, topic, partitions=PARTITIONS, **_KEPT, **_WRITTEN_AT)
            outages = Outages(time.time)
            watch = Watch(servers, options.applications)
            stack.callback(watch.stop)
            feed = Feed(servers, seed=options.seed, rate=options.rate, on_input=watch.input)
            stack.callback(feed.abandon)
            fleet = self._fleet(servers, network, outages, stack)
            self._say_at(f"brokers at {servers}; logs in {options.folder}")
            outages.note(EVERYBODY, time.time(), time.time() + _START_S, "the start")
            fleet.start()
            watch.start()
            feed.start()
            stack.callback(report.memory.write, options.folder)
            self._wait(_START_S, fleet, lambda: all(map(watch.has_results, names)))
            self._say_at("all applications have results; faults begin")
            self._break(cluster, fleet, feed, outages)
            feed.stop()
            self._say_at("the faults are over; everything must come out")
            self._move_time_on(watch, feed, fleet)
            self._wait(_FINISH_S, fleet, lambda: not any(watch.behind(name, feed.highest) for name in names))
            self._look_for_unfinished(cluster, watch, feed)
            fleet.stop()
            report.skipped_markers = cluster.skipped_markers()
            self._judge(servers, watch, fleet, outages, feed)
        return report

    def _network(self, stack: ExitStack) -> Network | None:
        """What lies between workers and brokers, if it is to be cut."""
        if not Network.possible or not any(fault.action is Action.CUT for fault in self._options.faults()):
            return None
        return stack.enter_context(Network.started(self._options.nodes, self._processes))

    def _processes(self) -> dict[int, str]:
        return {} if self._workers is None else self._workers.processes()

    def _fleet(self, servers: str, network: Network | None, outages: Outages, stack: ExitStack) -> Fleet:
        """The workers, with small disks and by way of the network where faults are to come to them."""
        options = self._options
        faults = options.faults()
        disks = {fault.target for fault in faults if fault.action is Action.FILL} if mountable() else set()
        cut = {fault.target.rpartition("-")[0] for fault in faults if fault.action is Action.CUT}
        workers = {}
        for one in options.applications:
            there = network.bootstrap_servers if network is not None and one.name in cut else servers
            for name in (*one.workers, one.spare):
                workers[name] = Worker(name, one, there, options.folder)
        for name in disks:
            stack.enter_context(small_disk(workers[name].state))
        fleet = Fleet(workers, outages, self._pause, self._say_at, network, disks)
        self._workers = fleet
        stack.callback(fleet.end)
        return fleet

    def _move_time_on(self, watch: Watch, feed: Feed, fleet: Fleet) -> None:
        """Has joins give what waits for its time; they look for it at most once a second."""
        joining = [one.name for one in self._options.applications if one.waits]
        for _ in range(_LOOKS if joining else 0):
            self._wait(_FINISH_S, fleet, lambda: not any(map(watch.unread, joining)))
            self._pause(_LOOK_AGAIN_S)
            feed.move_time_on()
        self._wait(_FINISH_S, fleet, lambda: not any(map(watch.unread, joining)))

    def _break(self, cluster: Cluster, fleet: Fleet, feed: Feed, outages: Outages) -> None:
        """Lets faults happen until all of them are over and the time is up."""
        lanes: dict[str, list[Fault]] = {}
        for fault in self._options.faults():
            worker = fleet.workers.get(fault.target)
            if worker is not None:
                lane = worker.application.name
            else:
                lane = INPUT if fault.target == INPUT else EVERYBODY
            lanes.setdefault(lane, []).append(fault)
        began = time.monotonic()
        trouble: list[BaseException] = []

        def carry_out(faults: Iterable[Fault]) -> None:
            try:
                for fault in faults:
                    self._pause(fault.at_s - (time.monotonic() - began))
                    self._say_at(f"{fault.target} {fault.action} {fault.length_s:g} s")
                    if fault.target in fleet.workers:
                        more = fleet.carry_out(fault)
                    elif fault.target == INPUT:
                        feed.poison(fault.length_s)
                        more = ""
                    else:
                        with outages.during(EVERYBODY, f"{fault.target} {fault.action}"):
                            more = cluster.carry_out(fault)
                    if more.startswith("left out"):
                        self._report.left_out += 1
                    else:
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
            for together in silences(gaps, outages.of(name), self._options.allowed_s):
                report.fail(name, _describe(together))
        self._say_at("reading what came out")
        expected = Expected.read(servers)
        report.lines = len(expected)
        for one in self._options.applications:
            report.longest_gap_s[one.name] = watch.gaps.longest(one.name)
            names = [] if Language.JAVA in one.kind.languages else [*one.workers, one.spare]
            folders = {name: fleet.workers[name].state for name in names}
            for what in check_application(servers, one, expected, folders):
                report.fail(one.name, what)

    def _wait(self, timeout_s: float, fleet: Fleet, done: Callable[[], bool]) -> None:
        """Looks after the workers until something is done, or the time is over."""
        deadline = time.monotonic() + timeout_s
        while not done() and time.monotonic() < deadline:
            fleet.look_after()
            self._report.memory.look(time.monotonic() - self._began, fleet.processes())
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
        + "".join(
            f"; within it, {outage.start - longest.allowed_until:.1f} s after it was too long: {outage.why}, "
            f"over at {_clock(outage.end)}"
            for outage in longest.within
        )
    )


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
