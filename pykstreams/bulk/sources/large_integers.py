"""Integers that a number (double) does not hold: it stands for several of them, so that different keys become one.

The first one is 9007199254740993 (2 ** 53 + 1). A column is one of numbers where not all of its fields are integers of
64 bits; so such an integer is looked for where the types of columns are found, before anything is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_ALL_HELD: Final = 2**53
_DIGITS: Final = r"^[+-]?[0-9]{16,}$"
_MANY_DIGITS: Final = re.compile(rb"[0-9]{16}")


def numbers_hold(texts: pa.Array) -> bool:
    """Whether numbers hold all integers among texts, each of which is a number."""
    large = pc.filter(texts, pc.match_substring_regex(texts, _DIGITS))
    return all(_is_held(text) for text in large.to_pylist())


class JsonIntegers:
    """Integers of JSON that would be read as numbers, which would not be the same.

    :param numbers: columns that are to be read as numbers anyway.
    """

    def __init__(self, numbers: Collection[str]) -> None:
        self._numbers = numbers
        self._integers: dict[str, int] = {}

    def look_through(self, block: bytes, table: pa.Table) -> None:
        """Looks through a block of lines, which was read as a table; ``ValueError`` names the column of the first one
        that has become a number already.
        """
        suspected = set()
        for name, path, array in _leaves(table):
            if name in self._numbers or path in self._integers or not pc.any(_is_large(array)).as_py():
                continue
            if pa.types.is_floating(array.type):
                suspected.add(path)
            else:
                large = pc.filter(array, _is_large(array)).to_pylist()
                first = next((integer for integer in large if not _is_held(integer)), None)
                if first is not None:
                    self._integers[path] = first
        if not suspected:
            return
        for line in block.splitlines():
            if _MANY_DIGITS.search(line):
                for path, found in _integers_in(json.loads(line)):
                    if path in suspected and not _is_held(found):
                        raise _not_held(path, found)

    def check(self, schema: pa.Schema) -> None:
        """``ValueError`` where one is in a column that has turned out to be one of numbers."""
        for _, path, array in _leaves(schema.empty_table()):
            if pa.types.is_floating(array.type) and path in self._integers:
                raise _not_held(path, self._integers[path])


def _not_held(path: str, found: int) -> ValueError:
    return ValueError(
        f"column {path!r} has the integer {found}, which a number (double) does not hold, and is not all integers of "
        f"64 bits; write them as texts, or, if numbers are meant, say types={{{path.partition('.')[0]!r}: 'double'}}"
    )


def _is_held(integer: int | str) -> bool:
    try:
        exact = int(integer)
        return float(exact) == exact
    except (OverflowError, ValueError):  # ValueError: more digits than Python takes
        return False


def _is_large(array: pa.Array) -> pa.Array:
    return pc.or_(pc.greater_equal(array, _ALL_HELD), pc.less_equal(array, -_ALL_HELD))


def _leaves(table: pa.Table) -> Iterator[tuple[str, str, pa.Array]]:
    """The columns of integers and numbers, also inside of others: (name, path, values)."""
    for name in table.schema.names:
        for chunk in table.column(name).chunks or [pa.nulls(0, table.schema.field(name).type)]:
            for path, array in _leaves_of(name, chunk):
                yield name, path, array


def _leaves_of(path: str, array: Any) -> Iterator[tuple[str, pa.Array]]:
    kind = array.type
    if pa.types.is_struct(kind):
        for field, inner in zip(kind, array.flatten(), strict=True):
            yield from _leaves_of(f"{path}.{field.name}", inner)
    elif pa.types.is_list(kind):
        yield from _leaves_of(path, array.flatten())
    elif pa.types.is_int64(kind) or pa.types.is_float64(kind):
        yield path, array


def _integers_in(value: object, path: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _integers_in(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _integers_in(inner, path)
    elif isinstance(value, int):
        yield path, value
