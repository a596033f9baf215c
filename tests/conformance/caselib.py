"""Writes cases in a few lines; nothing here is needed to read one."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance.values import Json

Step = dict[str, Json]


def typed(value: Any) -> Json:
    """Gives the typed JSON of a Python value; what is a dict is typed already, an ``int`` is a long.

    >>> typed(5), typed("a"), typed({"int": 5})
    ({'long': 5}, 'a', {'int': 5})
    """
    if value is None or isinstance(value, (str, dict)):
        return value
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"long": value}
    if isinstance(value, float):
        return {"double": value}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, uuid.UUID):
        return {"uuid": str(value)}
    raise TypeError(f"a case cannot hold {value!r}")


def pipe(topic: str, key: Any, value: Any, ts: int, headers: Sequence[tuple[str, str | None]] = ()) -> Step:
    """A step that pipes one record."""
    record: Json = {"topic": topic, "key": typed(key), "value": typed(value), "ts": ts}
    if headers:
        record["headers"] = [[name, None if text is None else text.encode().hex()] for name, text in headers]
    return {"pipe": record}


def clock(ms: int) -> Step:
    """A step that moves the wall clock."""
    return {"advance_wall_clock_ms": ms}


def query(store: str, op: str, **parameters: Any) -> Step:
    """A step that reads a store; ``from_`` is the field ``from``."""
    fields = {name.rstrip("_"): value for name, value in parameters.items()}
    for name in ("key", "from", "to"):
        if name in fields:
            fields[name] = typed(fields[name])
    return {"query_store": {"store": store, "op": op, **fields}}


def step(identifier: str, op: str, on: str | None = None, **parameters: Any) -> Step:
    """A step of a topology; ``with_`` and ``else_`` are the fields ``with`` and ``else``."""
    start = {"id": identifier, "op": op}
    if on is not None:
        start["on"] = on
    if "with_" in parameters:
        start["with"] = parameters.pop("with_")
    return start | parameters


@dataclass(slots=True)
class CaseFolder:
    """Writes cases below a folder, one file each, in a folder per area."""

    folder: Path
    names: set[str] = field(default_factory=set)

    def write(
        self,
        name: str,
        area: str,
        about: str,
        topology: list[Step],
        steps: list[Step],
        *,
        config: dict[str, Json] | None = None,
        cache: int = 0,
    ) -> Path:
        """Writes a case without ``expect``; ``ValueError`` for a name used before."""
        if name in self.names:
            raise ValueError(f"case {name!r} is written already")
        self.names.add(name)
        settings = {
            "application.id": "app",
            "topology.optimization": "none",
            "statestore.cache.max.bytes": cache,
            **(config or {}),
        }
        case = {"name": name, "area": area, "about": about, "config": settings}
        path = self.folder / area / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**case, "topology": topology, "steps": steps}), encoding="utf-8")
        return path
