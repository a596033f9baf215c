"""A transformer is called with ``None`` for a row that is not there, and may give ``None`` to delete one."""

from __future__ import annotations

from pykstreams import ValueTransformerWithKey


def of_nothing(transformer: ValueTransformerWithKey[str, int, int]) -> int:
    # error: return-value of mypy, reportReturnType of pyright
    return transformer.transform("a", None)
