"""The brokers of a run, and what can be done to them."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.brokers.brokers import wait_until_ready
from tests.brokers.coordinators import coordinator_of
from tests.brokers.local_broker import LocalBrokers, local_brokers
from tests.brokers.settings import ONE_BROKER, THREE_BROKERS
from tests.faults.schedule import Action, Fault

_SESSION_S = 3.0
_FENCED_S = _SESSION_S + 1.0
"""So long after its death a broker is known to be dead."""

_SETTINGS = {
    # Kafka looks for transactions that took too long every ten seconds; here they end when their time is over
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # a killed broker may register again after its session
    "broker.session.timeout.ms": f"{_SESSION_S * 1000:.0f}",
    "broker.heartbeat.interval.ms": "500",
}
_JVM = ("-Xms256m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_IN_SYNC_S = 60.0
_ASK_S = 5.0
_TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
_SKIPPED = "Couldn't find leader endpoint"
_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"


class Cluster:
    """One broker or three."""

    def __init__(self, brokers: LocalBrokers, groups: tuple[str, ...], pause: Callable[[float], object]) -> None:
        """Prepares to break ``brokers``; ``pause`` waits for so many seconds, or until the run is stopped."""
        self._brokers = brokers
        self._groups = groups
        self._pause = pause
        self._turn = 0
        self.bootstrap_servers = brokers.bootstrap_servers
        self.proxied_ports = brokers.proxied_ports
        self.nodes = brokers.nodes

    @classmethod
    @contextmanager
    def started(
        cls,
        number: int,
        groups: tuple[str, ...],
        pause: Callable[[float], object],
        *,
        proxies: Sequence[int] | None = None,
    ) -> Iterator[Cluster]:
        """Brokers for the length of a block.

        :param proxies: the ports before each of them, by which workers come that can be cut off.
        """
        settings: Mapping[str, str] = {**(ONE_BROKER if number == 1 else THREE_BROKERS), **_SETTINGS}
        # the controller knows that a lone broker is away only if it is not away with it
        own = number == 1
        with local_brokers(settings, nodes=number, jvm=_JVM, proxies=proxies, own_controller=own) as brokers:
            yield cls(brokers, groups, pause)

    def carry_out(self, fault: Fault) -> str:
        """Does what is planned; returns when the brokers are ready again, with more about what was done."""
        match fault.action:
            case Action.PAUSE:
                with self._brokers.paused(fault.target):
                    self._pause(fault.length_s)
            case Action.KILL:
                self._brokers.kill(fault.target)
                # one that comes back before it is known to be dead leads all partitions until that is known, and then
                # none: where it is the only one, it skips the markers of its transactions (tests/faults/README.md)
                self._pause(fault.length_s if len(self.nodes) > 1 else max(fault.length_s, _FENCED_S))
                self._brokers.start(fault.target)
            case Action.RESTART:
                self._restart(fault.target, fault.length_s)
            case Action.ROLL:
                for node in self.nodes:
                    self._restart(node, 0)
                    self._wait_until_in_sync()
            case Action.ELECT:
                return self._elect()
            case Action.COORDINATOR:
                group, coordinator = self._coordinator()
                self._restart(coordinator, fault.length_s)
                wait_until_ready(self._brokers)
                return f"{coordinator} coordinated {group}"
            case _:
                raise ValueError(f"that is no fault of a broker: {fault}")
        wait_until_ready(self._brokers)
        return ""

    def transactions(self) -> list[str]:
        """The transactions that the brokers know, and their states."""
        said = self._brokers.tool(_TRANSACTIONS, "--bootstrap-server", self.bootstrap_servers, "list")
        return [line for line in said.splitlines() if line and not line.startswith(("[", "\t", " ("))]

    def skipped_markers(self) -> list[str]:
        """What brokers say when they end a transaction without markers, for want of a leader: it hangs from then on.

        ``TransactionMarkerChannelManager`` (4.3.1) takes a partition without a leader for a deleted one.
        """
        logs = self._brokers.directory.glob("*/broker.log")
        lines = (line for log in logs for line in log.read_text(errors="replace").splitlines())
        return [f"{line[:26]} {line.rpartition('markers for ')[2]}" for line in lines if _SKIPPED in line]

    def keep_logs(self, folder: Path) -> None:
        """Copies what the brokers have said."""
        for log in self._brokers.directory.glob("*/broker.log"):
            shutil.copy(log, folder / f"broker-{log.parent.name}.log")

    def _restart(self, node: str, away_s: float) -> None:
        self._brokers.stop(node)
        self._pause(away_s)
        self._brokers.start(node)

    def _elect(self) -> str:
        # AdminClient.elect_leaders of confluent-kafka 2.16 ends in a SystemError, whatever it is called with
        self._wait_until_in_sync()
        command = [_ELECTION, "--bootstrap-server", self.bootstrap_servers, "--election-type", "preferred"]
        said = self._brokers.tool(*command, "--all-topic-partitions")
        moved = next((line for line in said.splitlines() if line.startswith("Successfully")), "")
        return f"{moved.count(',') + 1 if moved else 0} leaders moved"

    def _coordinator(self) -> tuple[str, str]:
        """A group, by turns, and the node that coordinates it."""
        group = self._groups[self._turn % len(self._groups)]
        self._turn += 1
        admin, deadline = self._admin(), time.monotonic() + _IN_SYNC_S
        while time.monotonic() < deadline:
            with contextlib.suppress(KafkaException):
                node = coordinator_of(admin, group)
                if node is not None:
                    return group, f"kafka-{node}"
            self._pause(0.2)
        raise TimeoutError(f"nobody coordinates {group} after {_IN_SYNC_S:g} s\n{self._brokers.log_tail()}")

    def _wait_until_in_sync(self) -> None:
        admin, deadline = self._admin(), time.monotonic() + _IN_SYNC_S
        while time.monotonic() < deadline:
            with contextlib.suppress(KafkaException):
                topics = admin.list_topics(timeout=_ASK_S).topics.values()
                partitions = [one for topic in topics for one in topic.partitions.values()]
                if all(set(one.isrs) == set(one.replicas) for one in partitions):
                    return
            self._pause(0.2)
        raise TimeoutError(f"replicas are not in sync after {_IN_SYNC_S:g} s\n{self._brokers.log_tail()}")

    def _admin(self) -> AdminClient:
        """A new one each time: a client keeps what it knows of leaders."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
