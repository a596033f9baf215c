"""One thing that is wrong, or may be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """An error keeps the application from starting or working; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check that did not go well.

    :param check: its short name: ``topology``, ``topics``, ``serdes``, ``subjects``, ``rights``, ``brokers``,
        ``clock``, ``keys``, ``disk`` or ``settings``.
    :param where: a topic, a step, a folder or a setting.
    """

    severity: Severity
    check: str
    what: str
    where: str
    cure: str

    def __str__(self) -> str:
        return f"{self.severity} [{self.check}] {self.where}: {self.what}\n    {self.cure}"

    def as_dict(self) -> dict[str, str]:
        """The finding for programs."""
        return {name: str(value) for name, value in asdict(self).items()}


def of_message(check: str, where: str, message: str) -> Finding:
    """Makes an error of a message as all of ours are: what happened, a semicolon, what to do."""
    what, _, cure = message.partition("; ")
    return Finding(Severity.ERROR, check, what, where, cure or "see the message")
