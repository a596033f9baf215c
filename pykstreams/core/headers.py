"""Headers of records, as a type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
"""Record headers in order; names may repeat, values may be null."""
