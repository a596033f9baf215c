"""The applications of a run: what each of them runs, by which guarantee, and in what kind of fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tests.faults.languages import Language
from tests.faults.programs import COUNTING, JOINING, Program
from tests.faults.topics import Output, dead_letters

SESSION_S = 6.0
TRANSACTION_S = 11.0
"""``transaction.timeout.ms`` under exactly-once, and a second until brokers look."""

_CLASSIC = {
    "consumer.session.timeout.ms": f"{SESSION_S * 1000:.0f}",
    "consumer.heartbeat.interval.ms": "1500",
}
_STREAMS = {"group.protocol": "streams"}
"""The session time-out is a setting of the brokers, as long as that."""

_SETTINGS = {
    "statestore.cache.max.bytes": "0",
    "repartition.purge.interval.ms": "15000",
    "log.summary.interval.ms": "30000",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fleet."""

    languages: tuple[Language, ...] = (Language.PYTHON,)
    """What its workers are written in: the next one, each time that one is started."""
    program: Program = COUNTING
    lone: bool = False
    in_streams_group: bool = False
    """Whether the brokers assign its tasks (``group.protocol``)."""
    standbys: int = 0


_MIXED = (Language.PYTHON, Language.JAVA)
_JAVA = (Language.JAVA,)

FLEETS = {
    "lone": Kind(lone=True),
    "several": Kind(),
    "streams": Kind(in_streams_group=True),
    "standbys": Kind(standbys=1),
    "joins": Kind(program=JOINING),
    "joins-standbys": Kind(program=JOINING, standbys=1),
    "joins-streams": Kind(program=JOINING, in_streams_group=True),
    "mixed": Kind(_MIXED),
    "mixed-streams": Kind(_MIXED, in_streams_group=True),
    "joins-mixed": Kind(_MIXED, program=JOINING),
    "java": Kind(_JAVA),
    "java-streams": Kind(_JAVA, in_streams_group=True),
    "joins-java": Kind(_JAVA, program=JOINING),
}

OURS = ("lone", "several", "streams")
"""Those that run when none are named; more at a time are too much for a small machine."""


@dataclass(frozen=True, slots=True)
class Application:
    """One of the applications; each reads the same input."""

    name: str
    exactly_once: bool
    workers: tuple[str, ...]
    kind: Kind = Kind()
    more: Mapping[str, str] = field(default_factory=dict)
    """Further settings of its workers."""

    @property
    def lone(self) -> bool:
        return len(self.workers) == 1

    @property
    def spare(self) -> str:
        """The worker that is there only when it is added."""
        return f"{self.name}-{len(self.workers) + 1}"

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.kind.program.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.kind.program.outputs

    @property
    def judged(self) -> tuple[Output, ...]:
        """The outputs that must be right: Java forgets lines that wait for their rates when it restores them.

        It takes the keys of that buffer's changelog for those of a window store (4.3.1).
        """
        if Language.JAVA in self.kind.languages:
            return tuple(output for output in self.outputs if output is not Output.RATED)
        return self.outputs

    @property
    def waits(self) -> bool:
        """Whether some of its results wait for the time of records to go on."""
        return Output.PAIRS in self.outputs

    @property
    def settings(self) -> dict[str, str]:
        common = {**_SETTINGS, **(_STREAMS if self.kind.in_streams_group else _CLASSIC)}
        common["num.standby.replicas"] = str(self.kind.standbys)
        common["errors.dead.letter.queue.topic.name"] = dead_letters(self.name)
        common |= self.more
        if self.exactly_once:
            return {**common, "processing.guarantee": "exactly_once_v2", "commit.interval.ms": "300"}
        return {**common, "commit.interval.ms": "1000"}

    @property
    def notice_s(self) -> float:
        """How long it takes until others may take over from a worker that is gone without a word."""
        return TRANSACTION_S if self.exactly_once else SESSION_S


def applications(several: int = 3, more: Mapping[str, str] = MappingProxyType({})) -> list[Application]:
    """Both guarantees, each with all kinds of fleets; with further settings for all."""
    return [
        Application(
            f"{short}-{name}",
            exactly_once,
            tuple(f"{short}-{name}-{number}" for number in range(1, (1 if kind.lone else several) + 1)),
            kind,
            more,
        )
        for short, exactly_once in (("alos", False), ("eos", True))
        for name, kind in FLEETS.items()
    ]
