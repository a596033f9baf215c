"""Whether two keys are one key: equal keys may have different bytes, and then they are two."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from math import copysign
from typing import Any


def is_same_key(one: Any, other: Any) -> bool:
    """Whether two keys are equal and of one type, in all their parts.

    ``1``, ``1.0`` and ``True`` are equal, as are ``0.0`` and ``-0.0``; written, and so stored and partitioned, they are
    different keys, also inside a tuple, a list, a dictionary or a data class.

    >>> is_same_key(("a", 1), ("a", 1)), is_same_key(("a", 1), ("a", 1.0))
    (True, False)
    """
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, float):
        return copysign(1.0, one) == copysign(1.0, other)
    if isinstance(one, tuple | list):
        return all(map(is_same_key, one, other))
    if isinstance(one, dict):
        return all(map(is_same_key, one.items(), other.items()))  # in order, in which they are written
    if is_dataclass(one):
        return all(is_same_key(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return True
