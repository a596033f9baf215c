"""Functions of joins as operators call them, which have ``None`` for the row of a side that is missing."""

from __future__ import annotations

from typing import cast

from pykstreams.core.types import KR, V1, V2, VR, K, KeyValueMapper, ValueJoiner


def over_missing_rows(joiner: ValueJoiner[V1, V2, VR]) -> ValueJoiner[V1 | None, V2 | None, VR]:
    """Returns the joiner itself: an operator calls it with ``None`` only for a side that may be missing."""
    return cast("ValueJoiner[V1 | None, V2 | None, VR]", joiner)


def over_missing_keys(selector: KeyValueMapper[K, V2, KR]) -> KeyValueMapper[K | None, V2 | None, KR]:
    """Returns the selector of keys itself, which gets ``None`` for the key of a missing row, likewise."""
    return cast("KeyValueMapper[K | None, V2 | None, KR]", selector)
