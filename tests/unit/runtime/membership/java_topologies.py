"""The topologies of twenty applications, as Kafka Streams 4.3.1 told them to a broker.

``python -m tests.interop.record_topologies`` records them (needs Java and Maven).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

TOPOLOGIES = Path(__file__).parent / "vectors" / "topologies.json"


class RecordedTopology(TypedDict):
    """One application.

    :param told: the bytes, in hexadecimal digits; ``None``: Java could not make them, and ended.
    """

    program: str
    optimized: bool
    told: str | None


def recorded_topologies() -> list[RecordedTopology]:
    """What was recorded."""
    found: list[RecordedTopology] = json.loads(TOPOLOGIES.read_text())
    return found


def settings_of(program: str, options: Mapping[str, str]) -> dict[str, str]:
    """The settings that an application was recorded with."""
    name = "-".join(("told", program.replace("_", "-"), *options.values()))
    return {"application.id": name, "app.prefix": f"{name}.", **options}
