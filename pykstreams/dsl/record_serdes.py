"""The serdes of the records that the functions of a step get."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.topology.graph import Graph


class RecordSerdes(NamedTuple):
    """The serdes of the records that the functions of a step get, where they are known."""

    graph: Graph
    key_serde: SerdeOrDefault
    value_serde: SerdeOrDefault
    name: str = ""
    """The processor that they come from."""


@runtime_checkable
class HasRecordSerdes(Protocol):
    """A stream, a table or what becomes one, whose methods are given functions."""

    @property
    def _record_serdes(self) -> RecordSerdes: ...
