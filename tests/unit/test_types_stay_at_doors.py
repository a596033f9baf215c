"""``Any`` stays at the doors of untyped libraries: no room writes it on more lines than it does today.

Where types are erased (a topology keeps serdes and processors of all types side by side), the alias that says so stands
once, in the lowest fitting module: ``AnySerde``, ``AnyProcessor``, ``AnyRecord``, ``AnyPartitioner``. A value that is
only passed on is an ``object``; what a function gets and gives back is a type variable.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

DOORS = (
    "pykstreams/bulk/engines/spark.py",
    "pykstreams/bulk/engines/spark_rows.py",
    "pykstreams/bulk/sources/file_formats.py",
    "pykstreams/bulk/state_rows/data_source.py",
    "pykstreams/http/connections.py",
    "pykstreams/runtime/clients",
    "pykstreams/state/bulk/sst.py",
    "pykstreams/state/engines/rocksdb.py",
    "serdes/avro.py",
    "serdes/registry/schema_registry.py",
    "serdes/json/json_of_types.py",
    "serdes/json/structured.py",
    "serdes/json/union_members.py",
)
"""The modules that speak with libraries without types: pyspark, pyarrow, confluent_kafka, rocksdict, fastavro, and the
libraries of users' classes. ``connections.py`` passes an overloaded method of asyncio on.
"""

CEILINGS = {
    "processors": 9,
    "pykstreams/bulk": 49,
    "pykstreams/core": 25,
    "pykstreams/dsl": 5,
    "pykstreams/runtime": 57,
    "pykstreams/runtime/queries": 17,
    "pykstreams/state": 129,
    "pykstreams/testing": 19,
    "pykstreams/topology": 4,
    "serdes": 9,
}
"""The lines with ``Any`` that a room may have; lower the number when there are fewer, never raise it."""

_WORD = re.compile(r"\bAny\b")


def test_no_room_writes_any_on_more_lines_than_its_ceiling() -> None:
    grown = {
        room: f"{lines} lines, {CEILINGS.get(room, 0)} allowed"
        for room, lines in _lines_by_room().items()
        if lines > CEILINGS.get(room, 0)
    }

    assert not grown, "name an erased type once, let the type flow, or take object for what is only passed on"


def test_every_room_with_a_ceiling_and_every_door_is_there() -> None:
    rooms = {_room(path) for path in _modules()}

    assert CEILINGS.keys() <= rooms
    assert [door for door in DOORS if not (ROOT / door).exists()] == []


def test_a_line_counts_once_in_code_and_in_quoted_types_but_not_in_imports_and_docstrings() -> None:
    source = '''"""Any module."""
from typing import Any
import typing

def both(one: Any, other: Any) -> "list[Any]":
    """Returns Any of them."""
    return [one, other]

value: typing.Any = None
Anything = int
'''

    assert _lines_with_any(source) == {5, 9}


def _lines_by_room() -> Counter[str]:
    counted: Counter[str] = Counter()
    for path in _modules():
        name = path.relative_to(ROOT).as_posix()
        if not any(name == door or name.startswith(f"{door}/") for door in DOORS):
            counted[_room(path)] += len(_lines_with_any(path.read_text()))
    return counted


def _modules() -> Iterator[Path]:
    for folder in ("pykstreams", "processors", "serdes"):
        yield from (path for path in (ROOT / folder).rglob("*.py") if not _is_link(path))


def _is_link(path: Path) -> bool:
    """Whether a module is seen through a link to ``processors`` or ``serdes``, which some Python versions follow."""
    return path.relative_to(ROOT).parts[:2] in (("pykstreams", "processors"), ("pykstreams", "serdes"))


def _room(path: Path) -> str:
    """The folder below ``pykstreams``; the queries of the runtime are one of their own, as wide as another's."""
    parts = path.relative_to(ROOT).parts
    if parts[:3] == ("pykstreams", "runtime", "queries"):
        return "pykstreams/runtime/queries"
    return "/".join(parts[:2]) if parts[0] == "pykstreams" and len(parts) > 2 else parts[0]


def _lines_with_any(source: str) -> set[int]:
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == "Any")
        or (isinstance(node, ast.Attribute) and node.attr == "Any")
        or (isinstance(node, ast.Constant) and id(node) not in docstrings and _names_it(node.value))
    }


def _names_it(value: object) -> bool:
    return isinstance(value, str) and _WORD.search(value) is not None
