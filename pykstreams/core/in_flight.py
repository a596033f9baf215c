"""The seam of operators that forward records later: the records they have taken and not forwarded yet.

Most operators are done with a record when their callable returns. One that calls a service, say, is not: the record
is *in flight*. Such an operator announces itself by ``OperatorContext.finishes_later`` while it is built; from then on
the task asks it before it takes records, lets it forward what has finished, and commits nothing while a record is in
flight.
"""

from __future__ import annotations

from typing import Protocol


class FinishesLater(Protocol):
    """The records that one operator of one task has in flight; all of it is for the processing thread."""

    @property
    def unfinished(self) -> int:
        """How many records it has taken and not forwarded yet."""
        ...

    @property
    def running(self) -> int:
        """How many of these are still being worked on elsewhere."""
        ...

    @property
    def room(self) -> int:
        """How many more records it wants; none if that is not positive. It keeps what comes all the same."""
        ...

    @property
    def has_news(self) -> bool:
        """Whether anything has finished since ``forward_finished`` was called last."""
        ...

    def forward_finished(self) -> None:
        """Forwards what may be forwarded, each record with ``current.raw`` as it was when the record came."""
        ...
