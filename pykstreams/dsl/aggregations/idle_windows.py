"""``idle=``: windows that close by the wall clock while there is no input."""

from __future__ import annotations

from pykstreams.core.types import Duration, duration_ms


class IdleWindows:
    """For how long the input of an aggregation must be idle, and then its windows close by the wall clock.

    The emit strategy says it, or a suppression further down, which may come later: so it is looked at when the operator
    is made. The shortest time counts.
    """

    def __init__(self) -> None:
        self.idle_ms: int | None = None

    def close_after(self, idle_ms: int) -> None:
        """Lets windows close after so long without input."""
        self.idle_ms = idle_ms if self.idle_ms is None else min(self.idle_ms, idle_ms)

    @classmethod
    def after(cls, idle_ms: int | None) -> IdleWindows:
        """Makes one that begins with a time, ``None``: windows do not close by the wall clock."""
        made = cls()
        made.idle_ms = idle_ms
        return made


def idle_ms_of(idle: Duration | None) -> int | None:
    """The same in ms; ``ValueError`` for less than 1 ms."""
    if idle is None:
        return None
    milliseconds = duration_ms(idle, "idle")
    if milliseconds < 1:
        raise ValueError(f"idle is {idle!r}; it must be at least 1 ms")
    return milliseconds


def idle_ms_on_close(idle: Duration | None, *, on_close: bool) -> int | None:
    """The same for an emit strategy; ``ValueError`` for one that holds nothing back."""
    if idle is not None and not on_close:
        raise ValueError(
            "idle is for results that are held back: give it with EmitStrategy.ON_WINDOW_CLOSE, or to "
            "Suppressed.until_window_closes"
        )
    return idle_ms_of(idle)
