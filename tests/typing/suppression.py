"""Suppressed tables keep their types; checked by ``mypy --strict``, never run."""

from datetime import timedelta
from typing import assert_type

from pykstreams import BufferConfig, BufferFullStrategy, KTable, Suppressed, Windowed


def suppressed(per_window: KTable[Windowed[str], int], totals: KTable[str, float]) -> None:
    strict = BufferConfig(max_records=10_000, when_full=BufferFullStrategy.SHUT_DOWN)
    assert_type(per_window.suppress(Suppressed.until_window_closes(strict, name="final")), KTable[Windowed[str], int])
    calm = Suppressed.until_time_limit(timedelta(minutes=1), BufferConfig.UNBOUNDED.replace(max_bytes=1 << 20))
    assert_type(totals.suppress(calm), KTable[str, float])


def wrong(totals: KTable[str, float]) -> None:
    totals.suppress(BufferConfig())  # type: ignore[arg-type]
    Suppressed.until_window_closes()  # type: ignore[call-arg]
    Suppressed.until_time_limit("1m", BufferConfig())  # type: ignore[arg-type]
    BufferConfig(10)  # type: ignore[call-arg]
    BufferConfig(when_full="shut_down")  # type: ignore[arg-type]
