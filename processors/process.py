"""The type of what an operator is per record, where the types of records are erased."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pykstreams.core.types import Headers

Process: TypeAlias = Callable[[Any, Any, int, Headers], None]
"""(key, value, timestamp in ms, headers) of a record of the types that the operator's parents forward.

An operator declares these types itself, as ``Forward``, which takes anything, cannot: a topology connects operators of
all types.
"""
