"""One consequence of a changed topology, and the verdicts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

RESET: Final = "stop all workers, and begin anew with 'pykstreams reset'; or give it a new name"


class Verdict(StrEnum):
    """The answer to "may I start the new one?", from good to bad."""

    SAFE = "safe"
    NEEDS_NAMES = "needs names"
    NEEDS_RESET = "needs reset"


@dataclass(frozen=True, slots=True)
class Change:
    """One consequence of a change.

    :param kind: ``orphaned``, ``renamed``, ``empty``, ``broken``, ``lost``, ``moved``, ``changed``, ``new``, ``gone``
        or ``unknown``.
    :param verdict: ``SAFE`` for what is only worth knowing.
    """

    kind: str
    where: str
    what: str
    cure: str
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.what}\n    {self.cure}"

    def as_dict(self) -> dict[str, str]:
        """The change for programs."""
        return {name: str(value) for name, value in asdict(self).items()}
