"""Warnings of aggregators that are annotated to return an aggregate, and return ``None``, as without a ``return``.

``None`` deletes the row, as in Kafka Streams; but where an annotation rules it out it is hardly meant. Annotations are
read when ``None`` comes for the first time, so that other records pay nothing for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pykstreams.core.processor import OperatorContext
from pykstreams.core.user_code.annotations import returned_type, written_function
from pykstreams.core.user_code.functions import describe_function
from pykstreams.serdes.by_type import rules_out_none, type_name

log = logging.getLogger(__name__)

_INTERVAL_MS: Final = 60_000


def missing_result(function: Callable[..., object], context: OperatorContext) -> Callable[[], None]:
    """Returns what an operator calls when the function has returned ``None``: it warns, where that is ruled out.

    Once for each node and interval.
    """
    now_ms = context.processing.current_system_time_ms
    promised: str | None = None
    last: int | None = None
    left_out = 0
    is_known = False

    def missing() -> None:
        nonlocal promised, last, left_out, is_known
        if not is_known:
            promised, is_known = _promised(function), True
        if promised is None:
            return
        now = now_ms()
        if last is not None and 0 <= now - last < _INTERVAL_MS:
            left_out += 1
            return
        more = f" ({left_out} more {'time' if left_out == 1 else 'times'} since the last warning)" if left_out else ""
        last, left_out = now, 0
        log.warning(
            "%s: %s is annotated to return %s, and returned None: the row of the key is deleted; return the aggregate "
            "at each end of the function, or annotate it to return %s | None%s",
            context.node,
            describe_function(written_function(function)),
            promised,
            promised,
            more,
        )

    return missing


def _promised(function: Callable[..., object]) -> str | None:
    """The type that a function is annotated to return, as text, if it rules out ``None``; ``None`` if it does not."""
    type_ = returned_type(function)
    return type_name(type_) if rules_out_none(type_) else None
