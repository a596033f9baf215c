"""The types and serdes that all topology scripts share."""

from __future__ import annotations

from typing import Any, TypeAlias

from pykstreams import Serdes
from pykstreams.serdes import JsonSerde

Event: TypeAlias = dict[str, Any]

text, number = Serdes.string(), Serdes.long()
json: JsonSerde[Event] = JsonSerde()
