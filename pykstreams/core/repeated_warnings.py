"""Warnings that would come many times: each cause is logged at once, and then once per interval while it lasts."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from pykstreams.core.clock import Clock

_PASSING_FACTS = re.compile(r"\[[^]]*\]|\([^)]*\)|(?<![\d.])\d+\.\d+(?![\d.])")

INTERVAL_S = 10.0
"""How often something that lasts is logged."""


@dataclass(slots=True)
class _Said:
    at: float
    since: int = 0


class RepeatedWarnings:
    """Logs a warning the first time, and again when an interval has passed, with the number of those in between.

    :param log: where they are written.
    :param interval_s: seconds between two lines of one cause.
    """

    def __init__(self, log: logging.Logger, clock: Clock, interval_s: float = INTERVAL_S) -> None:
        self._log = log
        self._clock = clock
        self._interval_s = interval_s
        self._said: dict[str, _Said] = {}

    def is_due(self, cause: str) -> int | None:
        """Returns how many were left out since the last line of this cause; ``None`` if this one is left out, too."""
        now = self._clock.monotonic()
        said = self._said.get(cause)
        if said is None:
            self._said = {one: found for one, found in self._said.items() if now - found.at < 2 * self._interval_s}
            self._said[cause] = _Said(now)
            return 0
        if now - said.at < self._interval_s:
            said.since += 1
            return None
        left_out, said.at, said.since = said.since, now, 0
        return left_out

    def warn(self, cause: str, text: str, *args: object) -> None:
        """Logs ``text % args``, if it is due for its cause."""
        left_out = self.is_due(cause)
        if left_out is None:
            return
        if left_out:
            text, args = f"{text} (%d more times in the last %g s)", (*args, left_out, self._interval_s)
        self._log.warning(text, *args, stacklevel=2)


class OncePerInterval(logging.Filter):
    """The same for a logger whose lines come from elsewhere: lines of one text and level are thinned out."""

    def __init__(self, clock: Clock, interval_s: float = INTERVAL_S) -> None:
        super().__init__()
        self._warnings = RepeatedWarnings(logging.getLogger(__name__), clock, interval_s)
        self._interval_s = interval_s

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        left_out = self._warnings.is_due(f"{record.levelno} {_cause(text)}")
        if left_out:
            record.msg, record.args = f"{text} ({left_out} more times in the last {self._interval_s:g} s)", ()
        return left_out is not None


def _cause(text: str) -> str:
    """The text without what differs from one time to the next: clients, threads, times, counts."""
    return _PASSING_FACTS.sub("", text)
