"""How old the answers of standby tasks are, by what the brokers say of the ends of their changelogs.

Whoever asks waits for the brokers a moment at most: while they are away, what they said last is what is known.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Final, TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.queries.lags import LagInfo

LAGS_AFTER_S: Final = 1.0
"""How old lags may be; then the brokers are asked again."""

_PATIENCE_S: Final = 1.0
"""For how long the brokers are waited for; they are given far longer to answer."""

_SAMPLES: Final = 300

_Lags: TypeAlias = Mapping[str, Mapping[int, LagInfo]]


class Staleness:
    """How far the standby tasks of this process are behind; asks the brokers once a second at most, for any thread.

    One that has come to where its changelog ended at a moment is no older than that moment.
    """

    def __init__(self, lags: Callable[[], _Lags], clock: Clock) -> None:
        self._lags = lags
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: deque[tuple[float, _Lags]] = deque(maxlen=_SAMPLES)
        self._asked_at = 0.0
        self._asked: Future[None] | None = None

    def lags(self) -> Mapping[str, Mapping[int, LagInfo]]:
        """The lags as the brokers say now, by store and partition; none when they do not answer in a moment."""
        asked_at = self._ask(self._clock.monotonic())
        with self._lock:
            newest = self._samples[-1] if self._samples else None
        return {} if newest is None or newest[0] < asked_at else newest[1]

    def of(self, store: str, partition: int) -> tuple[int | None, int | None]:
        """The offsets that are missing, and since how many ms at most; ``None`` for what is not known."""
        self._ask(self._clock.monotonic())
        now = self._clock.monotonic()  # later, by how long the brokers were waited for
        with self._lock:
            samples = list(self._samples)
        newest = samples[-1][1].get(store, {}).get(partition) if samples else None
        if newest is None:
            return None, None
        reached = [
            at
            for at, lags in samples
            if (then := lags.get(store, {}).get(partition)) is not None
            and then.end_offset_position <= newest.current_offset_position
        ]
        return newest.offset_lag, max(0, round((now - max(reached)) * 1000)) if reached else None

    def _ask(self, now: float) -> float:
        """Has the brokers asked if that is long ago, and waits a moment; others wait for the same answer.

        Returns when they were asked.
        """
        with self._lock:
            if self._asked is None or (self._asked.done() and now - self._asked_at >= LAGS_AFTER_S):
                self._asked, self._asked_at = Future(), now
                threading.Thread(target=self._sample, args=(self._asked, now), name="lags", daemon=True).start()
            asked, asked_at = self._asked, self._asked_at
        if wait((asked,), max(0.0, asked_at + _PATIENCE_S - now)).done:
            asked.result()
        return asked_at

    def _sample(self, asked: Future[None], now: float) -> None:
        try:
            with suppress(ClusterError):  # the brokers are away
                lags = self._lags()
                with self._lock:
                    self._samples.append((now, lags))
        except Exception as error:
            asked.set_exception(error)
            return
        asked.set_result(None)
