"""Checks of the clock: whether this machine and the cluster agree about the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.runtime.clients.inspection.cluster_facts import ClockReading

TOLERANCE_MS: Final = 5_000
"""Clocks that are kept by NTP are within some ms of each other."""


def clock_findings(reading: ClockReading | None) -> Iterator[Finding]:
    """Yields a clock that differs by more than ``TOLERANCE_MS``; where brokers do not tell the time, nothing.

    The answer was made at some time between the two readings of this machine, so what it took is never counted.
    """
    if reading is None:
        return
    ahead, behind = reading.before_ms - reading.broker_ms, reading.broker_ms - reading.after_ms
    if max(ahead, behind) <= TOLERANCE_MS:
        return
    how = f"{ahead / 1000:.1f} s ahead of" if ahead > 0 else f"{behind / 1000:.1f} s behind"
    yield Finding(
        Severity.WARNING,
        "clock",
        f"this machine is {how} the controller of the cluster: wall-clock punctuations, times to live, and timestamps "
        "taken here differ by that from what others see, and brokers refuse records that are an hour ahead of them",
        "clock",
        "set the clock of the machine that is wrong, and keep it by NTP (chrony, systemd-timesyncd)",
    )
