"""Functions that return ``None`` at each end, as without a ``return``."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable
from types import CodeType
from typing import Final

from pykstreams.core.user_code.annotations import plain_function

_GENERATORS: Final = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def returns_nothing(function: Callable[..., object]) -> bool:
    """Whether a function returns ``None`` whatever comes; false where that is not known, as of a class.

    Its code is read, and it is not called. One that only raises does not return at all.

    >>> returns_nothing(lambda row: print(row["id"]))
    False
    >>> def name(row): row["name"]
    >>> returns_nothing(name)
    True
    """
    plain = plain_function(function)
    return plain is not None and _returns_nothing(plain.__code__)


def _returns_nothing(code: CodeType) -> bool:
    """Whether a function has an end that is no exception, and each of them returns ``None``."""
    if code.co_flags & _GENERATORS:
        return False
    ends, before = 0, None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("RETURN_VALUE", "RETURN_CONST"):
            constant = instruction if instruction.opname == "RETURN_CONST" else before
            jumped_to = constant is before and instruction.is_jump_target  # as in "return value or None"
            if constant is None or jumped_to or "CONST" not in constant.opname or constant.argval is not None:
                return False
            ends += 1
        before = instruction
    return ends > 0
