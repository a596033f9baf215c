"""Under which circumstances Java and Python take turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.interop.programs import EXACTLY_ONCE, OPTIMIZED

STREAMS = {"group.protocol": "streams"}


@dataclass(frozen=True, slots=True)
class Mode:
    """A pattern tells who works in each phase: J and K are Java with one state directory each, P is Python.

    :param fresh: whether state directories are deleted before each phase.
    :param kill: whether a worker is killed at the end of its phase instead of being stopped.
    :param deletes: whether topics of tables keep ``cleanup.policy=delete``, and are not compacted.
    :param last_only: whether only the last value of each key is compared.
    """

    patterns: tuple[str, ...] = ("JPJP", "PJPJ")
    settings: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False
    kill: bool = False
    deletes: bool = False
    last_only: bool = False


MODES: Mapping[str, Mode] = {
    "kept": Mode(("JPJP", "PJPJ", "PPPP")),
    "fresh": Mode(fresh=True),
    "kill": Mode(kill=True),
    "cache": Mode(settings={"statestore.cache.max.bytes": "10000000"}, last_only=True),
    "exactly once": Mode(settings=EXACTLY_ONCE),
    "streams": Mode(("JPJP",), settings=STREAMS),
    "streams, exactly once": Mode(("JPJP",), settings={**STREAMS, **EXACTLY_ONCE}),
    "optimized": Mode(settings=OPTIMIZED),
    "optimized, deletes": Mode(("JPJP",), settings=OPTIMIZED, deletes=True),
}


def judge_of(pattern: str) -> str:
    """Java alone, with its state in as many places as the pattern has it.

    What Java does after a restart depends on whether its store was restored: only then are windows hidden that are
    past their retention.

    >>> judge_of("JPJP"), judge_of("PJPJ"), judge_of("PPPP")
    ('JKJK', 'JKJK', 'JJJJ')
    """
    places = dict(zip(dict.fromkeys(pattern), "JK", strict=False))
    return "".join(places[language] for language in pattern)
